import hydra
import lightning as L


@hydra.main(version_base=None, config_path="../configs", config_name="train")
def main(cfg):
    L.seed_everything(cfg.seed)
    data = hydra.utils.instantiate(cfg.data)
    model = hydra.utils.instantiate(cfg.model)
    trainer = hydra.utils.instantiate(cfg.trainer)
    trainer.fit(model, datamodule=data)


if __name__ == "__main__":
    main()

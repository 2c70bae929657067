import yaml

config = yaml.safe_load(open("config/job.yaml"))
print(config["test"]["crop"])

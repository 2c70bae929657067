import argparse


def evaluate_all(model):
    return model


def own_program():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=int, default=7)
    parser.add_argument("--only_here", type=bool, default=True)
    return parser.parse_args()


if __name__ == "__main__":
    print(own_program().only_here)

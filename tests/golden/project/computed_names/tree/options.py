import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="large")
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--act", default="relu")
parser.add_argument("--n_threads", type=int, default=6)
parser.add_argument("--debug", action="store_true")
args = parser.parse_args()
for name in vars(args):
    if vars(args)[name] == "True":
        vars(args)[name] = True

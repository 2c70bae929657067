import argparse

import click

parser = argparse.ArgumentParser()
parser.add_argument("--scale", type=int, default=1)
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--warm", action="store_true")
parser.add_argument("--optimizer", default="ADAMW_fast")
args = parser.parse_args()
if args.rank == 0:
    print("first")


@click.command()
@click.option("--bf16", type=bool, default=None)
def tool(bf16):
    print(bf16)

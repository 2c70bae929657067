# SPDX-License-Identifier: Apache-2.0
"""Groups of training processes for bench/ddp and bench/scaling."""

import json
import socket
import statistics
import subprocess
import sys
import tempfile

JOBS = {
    "sequence": (
        {"num_features": 16, "hidden_size": 128, "num_layers": 1},
        [{"shape": [64, 60, 16]}, {"shape": [64, 1]}],
    ),
    "window_cnn": (
        {"window_size": 24, "num_features": 16, "base_channels": 16},
        [{"shape": [64, 1, 24, 16]}, {"shape": [64, 1]}],
    ),
    "restoration": ({"base_channels": 32, "num_blocks": 4}, [{"shape": [4, 3, 48, 48]}, {"shape": [4, 3, 48, 48]}]),
    "classifier": (
        {"base_channels": 64, "num_classes": 10},
        [{"shape": [4, 1, 128, 128]}, {"shape": [4], "below": 10}],
    ),
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Group:
    """The processes of one contender, warmed up. Not together: so many processes side by side that do not talk."""

    def __init__(self, name, command, wish, ranks, together=True):
        self.name, self.ranks, self.batch = name, ranks, wish["fields"][0]["shape"][0]
        self.rates, self.exposed, self.total = [], [], []
        port = free_port()
        self.log = tempfile.TemporaryFile("w+")
        self.processes = [
            subprocess.Popen(
                command + [json.dumps({**wish, "ranks": ranks if together else 1, "rank": rank, "port": port})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                text=True,
            )
            for rank in range(ranks)
        ]
        for process in self.processes:
            if not process.stdout.readline().startswith("ready"):
                for other in self.processes:
                    other.kill()
                self.log.seek(0)
                sys.exit(f"error: {name} does not start: {self.log.read()[-500:]}")

    def ask(self, words, first=None):
        """-> the numbers that each process, or each of the first few, answers with"""
        asked = self.processes[:first]
        for process in asked:
            process.stdin.write(f"{words}\n")
            process.stdin.flush()
        return [[float(word) for word in process.stdout.readline().split()] for process in asked]

    def run(self, steps):
        answers = self.ask(f"steps {steps}")
        took = max(answer[1] for answer in answers)
        self.rates.append(steps * self.batch * self.ranks / took)
        self.answer = answers[0]
        if len(answers[0]) > 2:
            self.note_communication(answers)
        elif self.ranks > 1:  # DDP counts it on request: apart, so that counting costs no speed
            self.note_communication(self.ask(f"comm {max(2, steps // 4)}"))
        return took

    def note_communication(self, answers):
        took = max(answer[1] for answer in answers)
        self.exposed.append(100 * statistics.mean(answer[2] for answer in answers) / took)
        self.total.append(100 * statistics.mean(answer[3] for answer in answers) / took)

    def parts(self, steps, first):
        """-> seconds of a whole step, and of its forward, backward and optimizer, means over the first few processes at work at once"""
        columns = zip(*self.ask(f"steps {steps}", first))
        whole, _, _, *parts = [statistics.mean(column) / steps for column in columns][1:]
        return whole, parts

    def sum_seconds(self, size):
        return max(answer[0] for answer in self.ask(f"sum {size}"))

    def bucket_sizes(self):
        return self.ask("buckets 0")[0]

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()

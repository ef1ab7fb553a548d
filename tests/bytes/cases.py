"""Reads cases.txt, the command lines for run.py."""

import itertools
import pathlib
import re

COMMANDS = "blur histogram mesh scan sort info merge serve devices bench completions man help".split()

# Commands whose flags need not be tested, with the reason.
EXCEPTIONS = {"devices": "its output depends on the machine"}

# Alternatives in braces, which may contain names such as {stem}.
ALTERNATIVES = re.compile(r"\{((?:[^{}|]|\{\w+\})*(?:\|(?:[^{}|]|\{\w+\})*)+)\}")
# Files that match the patterns of sets, but are not in sets.
SKIPPED = {"in/empty.png", "in/mask.png", "in/fixtures/dicom/slice.png"}


class Cases:
    """The lines of cases.txt. The files of a set are those below `inputs` at the time when a line is expanded."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.sets, self.texts, self.make, self.lines = {}, {}, [], []
        text = pathlib.Path(__file__).with_name("cases.txt").read_text(encoding="utf-8")
        for line in re.sub(r"\n +(?=\|)", "", text).replace("\n  ", " ").splitlines():
            word, _, rest = line.partition(" ")
            if word in ("set", "let"):
                name, _, value = rest.partition(" = ")
                (self.sets if word == "set" else self.texts)[name] = value
            elif word == "make":
                self.make.append(rest)
            elif line and word[0] != "#":
                self.lines.append(line)

    def files(self, name):
        """Lists the files of a set, with names such as in/rgb8.png."""
        found = []
        for pattern in self.sets[name].split():
            if pattern[0] == "@":
                found += self.files(pattern[1:])
            else:
                paths = sorted(self.inputs.glob(pattern))
                found += [f"in/{path.relative_to(self.inputs)}" for path in paths]
        return [file for file in dict.fromkeys(found) if file not in SKIPPED]

    def expand(self, line):
        """Generates the command lines that a line stands for."""
        for name, text in self.texts.items():
            line = line.replace(name, text)
        line = re.sub(r"@(\w+)", lambda found: "|".join(self.files(found[1])), line)
        pieces = ALTERNATIVES.split(line)
        choices = [piece.split("|") if number % 2 else [piece] for number, piece in enumerate(pieces)]
        for choice in itertools.product(*choices):
            script = re.sub(r" +", " ", "".join(choice)).strip()
            yield "gpuproc " + script if script.split(" ")[0] in COMMANDS else script

    def to_make(self):
        """Lists the command lines that create inputs."""
        return [script for line in self.make for script in self.expand(line)]

    def to_run(self):
        """Lists each command line once, with whether it also runs on the GPU."""
        scripts = {}
        for line in self.lines:
            for script in self.expand(line.removeprefix("*")):
                scripts[script] = scripts.get(script, False) or line[0] == "*"
        return list(scripts.items())

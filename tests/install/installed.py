#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# installed.py BUILD: installs a build directory into an empty folder and judges
# what lies there, as tests/install/README.md says. Ends with `N passed, N
# failed`.

import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ["attn", "attn_bench", "attn_io", "attn_lab", "attn_layer",
             "attn_picture", "attn_subject"]
HEADERS = LIBRARIES + ["attn_doctor", "attn_ref"]
OTHERS = ["bin/attn",
          "share/man/man1/attn.1", "share/man/man3/attn.3",
          "share/bash-completion/completions/attn",
          "share/zsh/site-functions/_attn",
          "share/fish/vendor_completions.d/attn.fish"]
passed = failed = 0


def check(what, good, why=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"not so: {what}: {why}")
    return good


def run(*words, **more):
    """(exit code, output) of a command; what is not there has a code too."""
    try:
        done = subprocess.run([str(word) for word in words], text=True,
                              stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **more)
    except OSError as error:
        return -1, str(error)
    return done.returncode, done.stdout


def here(program):
    found = shutil.which(program) is not None
    if not found:
        print(f"{program} is not here, so what needs it is passed over")
    return found


# ------------------------------------------------------------------- files

def check_files(prefix, libdir, version):
    names = {str(p.relative_to(prefix)) for p in prefix.rglob("*")
             if not p.is_dir()}
    wanted = set(OTHERS) | {f"include/{name}.h" for name in HEADERS}
    for name in LIBRARIES:
        wanted |= {f"{libdir}/lib{name}{end}" for end in
                   (".a", ".so", ".so.0", f".so.{version}")}
        wanted.add(f"{libdir}/pkgconfig/{name}.pc")
    wanted |= {f"{libdir}/cmake/attn/attn-config{end}.cmake"
               for end in ("", "-version")}
    check("the files that are wanted, and no others", names == wanted,
          f"missing {sorted(wanted - names)}, extra {sorted(names - wanted)}")
    for path in prefix.rglob("*"):
        if path.is_file() and path.suffix not in (".a",):
            check(f"{path.name} knows nothing of the build",
                  str(HERE.parents[1]).encode() not in path.read_bytes())


# ----------------------------------------------------------------- programs

def check_program(what, program, environment):
    code, said = run(program, env=environment)
    check(what + " runs", code == 0 and said.startswith("libattn "), said)


def others_can_be_linked(static, folder, environment):
    """Whether the libraries of others that ours need can be linked alone: a
    distribution's may ask for more than it installs with them."""
    (folder / "empty.c").write_text("int main(void) { return 0; }\n",
                                    encoding="utf-8")
    lines = run("pkg-config", "--print-requires-private", *LIBRARIES,
                env=environment)[1].splitlines()
    for name in sorted({line.split()[0] for line in lines} - set(LIBRARIES)):
        flags = run("pkg-config", *static.split(), "--libs", name)[1].split()
        if run("gcc", folder / "empty.c", "-o", folder / "empty", *flags)[0]:
            print(f"{name} alone cannot be linked{static}, so a program by "
                  f"pkg-config{static} is passed over")
            return False
    return True


def by_pkg_config(root, libdir, folder, static):
    environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(root),
                   "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    what = "a program by pkg-config" + static
    code, flags = run("pkg-config", "--cflags", "--libs",
                      *static.split(), *LIBRARIES, env=environment)
    if not check("pkg-config" + static, code == 0, flags) or \
            not others_can_be_linked(static, folder, environment):
        return
    # The system's own folders are not below the empty one.
    flags = [word for word in flags.split()
             if not word.startswith(f"-I{root}/usr/include")]
    program = folder / "consumer"
    code, said = run("gcc", "-Wall", "-Werror", HERE / "consumer.c", "-o",
                     program, *flags)
    if check(what + " is built", code == 0, said):
        check_program(what, program,
                      {**os.environ, "LD_LIBRARY_PATH": str(libdir)})


def by_cmake(prefix, folder, static):
    what = "a program by CMake" + static
    code, said = run("cmake", "-S", HERE, "-B", folder,
                     f"-DCMAKE_PREFIX_PATH={prefix}")
    if not check(what + " is configured", code == 0, said):
        return
    code, said = run("cmake", "--build", folder)
    if check(what + " is built", code == 0, said):
        check_program(what, folder / "consumer", os.environ)


def cmake_refuses(prefix, folder):
    """Versions that are not this one's, and a component that is none."""
    for what, words in (("a newer version", "attn 0.9 REQUIRED"),
                        ("the next major version", "attn 1 REQUIRED"),
                        ("a component that is none",
                         "attn REQUIRED COMPONENTS engine")):
        folder.mkdir(exist_ok=True)
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.21)\nproject(x C)\n"
            f"find_package({words})\n", encoding="utf-8")
        code, said = run("cmake", "-S", folder, "-B", folder / "build",
                         f"-DCMAKE_PREFIX_PATH={prefix}")
        check(f"CMake refuses {what}", code != 0 and "attn" in said, said)


def check_programs(root, prefix, libdir, folder):
    with_cmake = here("cmake")
    for static in ("", " --static"):
        if static:
            # A tree that has static libraries alone.
            for path in libdir.glob("*.so*"):
                path.unlink()
        place = folder / ("programs" + static.strip())
        place.mkdir()
        by_pkg_config(root, libdir, place, static)
        if with_cmake:
            by_cmake(prefix, place / "cmake", static)
    if with_cmake:
        cmake_refuses(prefix, folder / "refused")


# -------------------------------------------------------------------- words

def words_of(attn):
    """The verbs, and of each (option, value, help)."""
    verbs = [line.split("\t")[0]
             for line in run(attn, "--words")[1].splitlines()]
    return {verb: [line.split("\t") for line in
                   run(attn, verb, "--words")[1].splitlines()]
            for verb in verbs}


def check_help(attn, words):
    """Both come from one table; this sees that --words leaves nothing out."""
    for verb, options in words.items():
        said = run(attn, verb, "--help")[1]
        shown = re.findall(r"^  (-\S+?)(?=[=\[\s]|$)", said, re.M)
        check(f"--words and --help of {verb} agree",
              [o[0] for o in options] == shown and shown,
              f"{options}, {shown}")


def check_manual(prefix, words):
    pages = [prefix / "share/man/man1/attn.1", prefix / "share/man/man3/attn.3"]
    first, third = (p.read_text(encoding="utf-8") for p in pages)
    if here("groff"):
        code, said = run("groff", "-man", "-Tutf8", "-ww", "-z", *pages)
        check("groff likes the pages", code == 0 and not said, said)
        first = re.sub(r"\x1b\[\d*m", "", run(
            "groff", "-man", "-Tutf8", "-rLL=200n", "-P-c", pages[0],
            env={**os.environ, "GROFF_NO_SGR": "1"})[1])
        first = re.sub(".\b", "", first).replace("\u2212", "-")
    else:
        first = first.replace("\\-", "-")
    for verb, options in words.items():
        part = first.partition(f"attn {verb} ")[2]
        check(f"the manual has {verb}", part)
        for name, value, told in options:
            shown = name + (" " + value[1:] if name[1] != "-" else value)
            check(f"the manual has {verb} {shown}",
                  shown in part and told.split()[-1] in part)
    for name in HEADERS:
        check(f"the page of the library has {name}.h", name + ".h" in third)
    for name in LIBRARIES:
        check(f"the page of the library has {name}",
              re.search(rf"\b{name}\b(?!\.h)", third))


BASH = """
. "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_attn
printf '%s\\n' "${COMPREPLY[@]}"
"""
def ask_bash(prefix, line):
    words = [piece for word in line.split(" ")
             for piece in (re.findall("=|[^=]+", word) or [""])]
    said = run("bash", "-c", BASH, "bash",
               prefix / "share/bash-completion/completions/attn", *words)[1]
    return said.split("\n")


def ask_fish(prefix, line):
    said = run("fish", "--no-config", "-c",
               "source $argv[1]; complete -C $argv[2]",
               prefix / "share/fish/vendor_completions.d/attn.fish", line)[1]
    return [text.split("\t")[0] for text in said.split("\n")]


class Zsh:
    """zsh completes for people alone: one on a terminal of ours."""

    PATIENCE = 30  # seconds, of which a busy machine may need some

    def __init__(self, prefix):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvp("zsh", ["zsh", "-f", "-i"])
        folder = shlex.quote(str(prefix / "share/zsh/site-functions"))
        self.say("PS1=; stty cols 300 rows 500; LISTMAX=10000\r"
                 f"fpath=({folder} $fpath); autoload -Uz compinit\r"
                 "compinit -u -D; zstyle ':completion:*' menu no\r"
                 "echo rea''dy\r", {"ready"})

    def say(self, keys, want):
        """Press keys and read on until all of `want` is there; the words."""
        os.write(self.terminal, keys.encode())
        text, end = b"", time.monotonic() + self.PATIENCE
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                text += os.read(self.terminal, 65536)
            shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "",
                           text.decode(errors="replace"))
            words = set(re.split(r"[\s\x07]+", shown))
            if want <= {word.rstrip("=") for word in words}:
                break
        return words

    def ask(self, line, want):
        words = self.say(line + "\t\t", want)
        os.write(self.terminal, b"\x15")  # take the line back
        return words

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def offered(shell, prefix, lines, wanted):
    """The words that a shell offers for the end of each line, whose last word
    is begun or empty."""
    if shell == "zsh":
        zsh = Zsh(prefix)
        got = [zsh.ask(line, want) for line, want in zip(lines, wanted)]
        zsh.end()
        return got
    ask = ask_bash if shell == "bash" else ask_fish
    return [ask(prefix, line) for line in lines]


def check_completions(prefix, words):
    lines = ["attn ", "attn run --causal=", "attn lab ",
             *(f"attn {verb} --" for verb in words)]
    wanted = [set(words), {"top_left", "bottom_right"},
              {"first-token", "sqrt-d"},
              *({o[0] for o in options if o[0].startswith("--")} | {"--help"}
                for options in words.values())]
    for shell in ("bash", "zsh", "fish"):
        if not here(shell):
            continue
        for line, want, got in zip(lines, wanted, offered(
                shell, prefix, lines, wanted)):
            got = {re.sub("^--causal=|=$", "", word) for word in got}
            check(f"{shell} completes '{line}'", want <= got,
                  f"{want - got} missing of {got}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        root = folder / "root"
        code, said = run("meson", "install", "-C", build, "--no-rebuild",
                         "--destdir", root)
        if check("meson install", code == 0, said):
            prefix = next(root.glob("**/bin/attn")).parents[1]
            libdir = next(prefix.glob("**/libattn.a")).parent
            attn = prefix / "bin/attn"
            code, said = run(attn, "--version")
            check("the command runs where it lies", code == 0, said)
            check_files(prefix, libdir.relative_to(prefix), said.split()[1])
            words = words_of(attn)
            check_help(attn, words)
            check_manual(prefix, words)
            # By its name, so that the shells know whose completions to ask.
            os.environ["PATH"] = f"{attn.parent}:{os.environ['PATH']}"
            check_completions(prefix, words)
            check_programs(root, prefix, libdir, folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""``completion``: the Tab key for commands, verbs, options and names, in bash, zsh and fish."""

from __future__ import annotations

from functools import partial
from typing import Any

from jobs.management.arguments import Verbs
from jobs.management.base import VerbCommand
from jobs.management.completing import candidates
from jobs.management.output import Output

BASH = """\
_mainspring() {
  local n=1 found
  COMPREPLY=()
  if [[ "${COMP_WORDS[0]##*/}" == python* ]]; then
    [[ $COMP_CWORD -gt 1 && "${COMP_WORDS[1]##*/}" == manage.py ]] || return
    n=2
  fi
  while IFS= read -r found; do  # a name may hold anything, and none of it is for the shell to carry out
    [[ -n $found ]] && COMPREPLY+=("$(printf %q "$found")")
  done < <("${COMP_WORDS[@]:0:n}" completion next -- "${COMP_WORDS[@]:n:COMP_CWORD-n+1}" 2>/dev/null)
}
complete -o default -F _mainspring python python3 manage.py
"""

ZSH = """\
_mainspring() {
  local -a found
  found=("${(@f)$("${(Q)words[1]}" completion next -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -- $found || _files
}
compdef _mainspring manage.py
"""

FISH = """\
function __mainspring
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion next -- $words[2..-1] 2>/dev/null)
    test (count $found) -gt 0; and printf '%s\\n' $found; or __fish_complete_path (commandline -ct)
end
complete -c manage.py -f -a '(__mainspring)'
"""

SHELLS = {
    "bash": (BASH, 'eval "$(./manage.py completion bash)"  # in ~/.bashrc'),
    "zsh": (ZSH, 'eval "$(./manage.py completion zsh)"  # in ~/.zshrc, after compinit'),
    "fish": (FISH, "./manage.py completion fish | source  # in config.fish"),
}


class Command(VerbCommand):
    help = "Complete commands, verbs, options, and names of pools, types, schedules and workflows by the Tab key."
    examples = """
        eval "$(./manage.py completion bash)"
    """

    def verbs(self, verbs: Verbs) -> None:
        for shell, (script, examples) in SHELLS.items():
            verbs.add(shell, partial(self.script, text=script), help=f"Print what {shell} needs.", examples=examples)
        asked = verbs.add(
            "next",
            self.next,
            help="What the last word may become, a line each: the scripts ask this.",
            examples="manage.py completion next -- jobs list --po",
        )
        asked.add_argument("words", nargs="*", metavar="WORD", help="the command line without its first word")

    def script(self, output: Output, *, text: str, **_options: Any) -> None:
        output.text(text)

    def next(self, output: Output, *, words: list[str], **_options: Any) -> None:
        for candidate in candidates(words):
            output.line(candidate)

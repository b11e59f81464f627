# SPDX-License-Identifier: Apache-2.0
#
# bash: words for attn. The command itself says which there are: `attn VERB
# --words` has a line for each option, its name, =X or [=A|B] or nothing, and
# its help, with tabs between.

# The options: --name, or --name= where a value must follow.
_attn_options()
{
    local line
    while IFS= read -r line; do
        case $line in
        --*$'\t='*) printf '%s=\n' "${line%%$'\t'*}" ;;
        *) printf '%s\n' "${line%%$'\t'*}" ;;
        esac
    done
    echo --help
}

# The values of option $1 that are to be written as they stand.
_attn_values()
{
    local line
    while IFS= read -r line; do
        [[ ${line%%$'\t'*} == "$1" ]] || continue
        line=${line#*$'\t'}
        line=${line%%$'\t'*}
        printf '%s\n' "$line" | tr -d '[]' | cut -c2- | tr '|' '\n' |
            grep -x '[a-z0-9_-]*'
    done
}

_attn_offer()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_attn()
{
    local attn=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} at=$COMP_CWORD
    local word=${COMP_WORDS[at]} option=${COMP_WORDS[at - 1]} table values

    # bash takes --name=value for three words.
    if [[ $word == = ]]; then
        word=
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[at - 2]}
    fi
    COMPREPLY=()
    if ((at == 1)); then
        _attn_offer "$("$attn" --words 2>/dev/null | cut -f1)
            --help --version" "$word"
        return
    fi
    table=$("$attn" "$verb" --words 2>/dev/null) || return
    values=$(_attn_values "$option" <<<"$table")
    if [[ -n $values ]]; then
        _attn_offer "$values" "$word"
    fi
    if [[ ${#COMPREPLY[@]} == 0 && $word == -* ]]; then
        _attn_offer "$(_attn_options <<<"$table")" "$word"
        [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] &&
            compopt -o nospace 2>/dev/null
    elif [[ $verb == lab && $at == 2 ]]; then
        _attn_offer "$("$attn" lab 2>/dev/null | cut -d' ' -f1)" "$word"
    fi
}

# Where this has nothing to say, files.
complete -o default -F _attn attn

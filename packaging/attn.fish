# SPDX-License-Identifier: Apache-2.0
#
# fish: words for attn. The command itself says which there are.

# The words of the verb on the command line, each with its help: --name, or
# --name= where a value must follow.
function __attn_options
    set -l words (commandline -opc)
    for line in ($words[1] $words[2] --words 2>/dev/null)
        set -l part (string split \t -- $line)
        string match -q -- '=*' $part[2]; and string match -q -- '--*' $part[1]
        and set part[1] "$part[1]="
        printf '%s\t%s\n' $part[1] $part[3]
    end
    printf '%s\t%s\n' --help 'tell all of it'
end

# The values offered for the option before, or in, the current word.
function __attn_values
    set -l words (commandline -opc)
    set -l now (commandline -ct)
    set -l option $words[-1]
    set -l head
    if string match -q -- '--*=*' $now
        set option (string split -m 1 = -- $now)[1]
        set head "$option="
    end
    for line in ($words[1] $words[2] --words 2>/dev/null)
        set -l part (string split \t -- $line)
        test "$part[1]" = "$option"; or continue
        for value in (string split '|' -- (string trim -c '[=]' -- $part[2]))
            string match -q -r '^[a-z0-9_-]+$' -- $value
            and printf '%s%s\n' $head $value
        end
    end
end

function __attn_verbs
    set -l words (commandline -opc)
    $words[1] --words 2>/dev/null
    printf '%s\t%s\n' --help 'list the verbs' --version 'say which version'
end

function __attn_experiments
    set -l words (commandline -opc)
    $words[1] lab 2>/dev/null | string replace -r ' +' \t
end

complete -c attn -f -n 'test (count (commandline -opc)) -eq 1' \
    -a '(__attn_verbs)'
complete -c attn -n 'test (count (commandline -opc)) -gt 1' \
    -a '(__attn_options)'
complete -c attn -n 'test (count (commandline -opc)) -gt 1' \
    -a '(__attn_values)'
complete -c attn -n 'test (count (commandline -opc)) -eq 2;
    and test (commandline -opc)[2] = lab' -a '(__attn_experiments)'

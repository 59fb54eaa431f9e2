# Tab completion for h2t2 in {shell}; `h2t2 completion {shell}` printed it.
_h2t2() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words=
    COMPREPLY=()
    if [[ $word == "=" ]]; then
        word=
    elif [[ $previous == "=" ]]; then
        previous=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if [[ $COMP_CWORD -eq 1 ]]; then
        words="{names}"
    elif [[ $word == -* ]]; then
        case $command in
{options}
        esac
    else
        case "$command $previous" in
{choices}
        esac
        if [[ -z $words && $COMP_CWORD -eq 2 ]]; then
            case $command in
{positional}
            esac
        fi
    fi
    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _h2t2 h2t2

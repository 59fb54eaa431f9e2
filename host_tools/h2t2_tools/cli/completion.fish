# Tab completion for h2t2 in fish; `h2t2 completion fish` printed it.
function __h2t2_is
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv"
end
function __h2t2_begins
    set -l words (commandline -opc)
    string match -q "$argv *" "$words[2..] "
end
complete -c h2t2 -f

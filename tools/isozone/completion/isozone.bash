# Bash completion for isozone, which says itself what it offers (completion.h).

_isozone()
{
    local -a words offered
    local current=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    mapfile -t offered < <("$1" --complete "${words[@]:1}" 2> /dev/null)
    [[ $current == = ]] && current=""
    case ${offered[0]} in
        :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "${offered[*]%%$'\t'*}" -- "$current") ;;
    esac
}

complete -F _isozone isozone

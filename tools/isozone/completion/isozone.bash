# Bash completion for isozone.

_isozone()
{
    local commands="mkfs info df ls stat cat cp rm zones fsck dump izg bench"
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command="" word index
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        case $word in
            --color | always | auto | never | = | -*) ;;
            *) command=$word; break ;;
        esac
    done
    if [[ $command == bench ]]; then
        case ${COMP_WORDS[index + 1]} in
            device | io) ((index + 1 < COMP_CWORD)) && command="bench ${COMP_WORDS[index + 1]}" ;;
        esac
    fi

    if [[ $command == izg ]]; then
        case ${COMP_WORDS[index + 1]} in
            identify | show) ((index + 1 < COMP_CWORD)) && command="izg ${COMP_WORDS[index + 1]}" ;;
        esac
    fi

    case $previous in
        --color) COMPREPLY=($(compgen -W "auto always never" -- "$current")); return ;;
        --svg) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    esac

    local options
    case $command in
        "") options="--version" ;;
        mkfs) options="--label --force --json" ;;
        info | df | stat) options="--json" ;;
        ls) options="-l --long -R --recursive --json" ;;
        cp | rm) options="-r --recursive" ;;
        zones) options="--svg --table --all --json" ;;
        fsck) options="--read-data --json" ;;
        "izg identify" | "izg show") options="--svg --json" ;;
        "bench device") options="--zones --samples --size --svg --destroy --json" ;;
        "bench io") options="--depth --bytes --write-size --read-size --reads --destroy --json" ;;
    esac

    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options --color --help" -- "$current"))
    elif [[ -z $command ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
    elif [[ $command == bench ]]; then
        COMPREPLY=($(compgen -W "device io" -- "$current"))
    elif [[ $command == izg ]]; then
        COMPREPLY=($(compgen -W "identify show" -- "$current"))
    elif [[ $command == cp ]]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}

complete -F _isozone isozone

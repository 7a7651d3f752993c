# Bash completion for isozone.

_isozone()
{
    local commands="mkfs info df ls stat cat cp rm backup restore import zones fsck dump izg gc bench stats top serve advise why mount run export simulate"
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

    if [[ $command == gc ]]; then
        case ${COMP_WORDS[index + 1]} in
            run | status | plan) ((index + 1 < COMP_CWORD)) && command="gc ${COMP_WORDS[index + 1]}" ;;
        esac
    fi

    case $previous in
        --color) COMPREPLY=($(compgen -W "auto always never" -- "$current")); return ;;
        --svg | --html | --list | --output | --verify) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
        --workload) COMPREPLY=($(compgen -W "write read mixed" -- "$current")); return ;;
        --compaction) COMPREPLY=($(compgen -W "gear greedy isozone leveled ll" -- "$current")); return ;;
        --policy) COMPREPLY=($(compgen -W "isozone level lifetime zenfs" -- "$current")); return ;;
        --hints) COMPREPLY=($(compgen -W "none lifetime level steered" -- "$current")); return ;;
        --t-zone | --wal | --moves | --steering) COMPREPLY=($(compgen -W "on off" -- "$current")); return ;;
        --gc | --scheme)
            COMPREPLY=($(compgen -W "none zenfs full zenfs+ lifetime lsm-zgc isozone" -- "$current")); return ;;
    esac

    local options
    case $command in
        "") options="--version" ;;
        mkfs) options="--label --metadata-copies --force --json" ;;
        info | df | why) options="--json" ;;
        stat) options="--all --json" ;;
        ls) options="-l --long -R --recursive --json" ;;
        zones) options="--svg --html --table --all --zone --json" ;;
        cp) options="-r --recursive --resume" ;;
        rm) options="-r --recursive" ;;
        backup) options="--keep --verify" ;;
        restore) options="--force" ;;
        fsck) options="--read-data --repair --json" ;;
        "izg identify") options="--svg --force --json" ;;
        "izg show") options="--svg --json" ;;
        "gc run") options="--until --scheme --json" ;;
        "gc status") options="--scheme --json" ;;
        "gc plan") options="--all --scheme --json" ;;
        "bench device") options="--zones --samples --size --svg --destroy --json" ;;
        "bench io") options="--depth --bytes --write-size --read-size --reads --destroy --json" ;;
        stats) options="--json --zones --prometheus --watch --interval" ;;
        top) options="--interval --once" ;;
        serve) options="--listen --allow-host --no-keys" ;;
        advise) options="--memory --workload --database --cores --output" ;;
        mount) options="-o --options -f --foreground" ;;
        export) options="--id --recover --remove" ;;
        run) options="--map" ;;
        simulate) options="--keys --value-size --data --phase --list --deletes --grain --seed
        --memtable --memtables --wal --table --levels --level-base --level-multiplier --compaction-trigger
        --slowdown-trigger --stop-trigger --soft-pending --hard-pending --flushes --compactions --compaction --moves --steering --sweep --profile --zones --zone-size
        --limit --policy --gc --gc-start --gc-memory --hints --t-zone --stripe-width --put-rate --compaction-rate --json" ;;
    esac

    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options --color --help" -- "$current"))
    elif [[ -z $command ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
    elif [[ $command == bench ]]; then
        COMPREPLY=($(compgen -W "device io" -- "$current"))
    elif [[ $command == izg ]]; then
        COMPREPLY=($(compgen -W "identify show" -- "$current"))
    elif [[ $command == gc ]]; then
        COMPREPLY=($(compgen -W "run status plan" -- "$current"))
    elif [[ $command == cp || $command == backup || $command == restore ]]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$current"))
    elif [[ $command == mount ]]; then
        compopt -o filenames
        COMPREPLY=($(compgen -d -- "$current"))
    fi
}

complete -F _isozone isozone

import { AutoCorrect, CliConfig } from "@effect/cli"
import { Array as Arr, Either, Order } from "effect"
import { UsageError } from "../ExitCode.ts"
import { type CommandPage, commandsByName, type Entry, type Group, isGroup, read } from "./Help.ts"

const ignoringCase = CliConfig.make({ isCaseSensitive: false })

const swapsOf = (word: string) =>
  Array.from(word.slice(1), (letter, index) => word.slice(0, index) + letter + word[index] + word.slice(index + 2))

/** The number of typing mistakes between two words. Two swapped letters count as one. */
const distanceOf = (word: string, candidate: string) =>
  swapsOf(word).includes(candidate) ? 1 : AutoCorrect.levensteinDistance(word, candidate, ignoringCase)

/** Returns the candidate that a mistyped word probably means. */
export const closest = (word: string, candidates: ReadonlyArray<string>): string | undefined => {
  const maxDistance = word.replace(/^-+/, "").length < 5 ? 1 : 2
  const distances = candidates.map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
  const byDistance = Order.mapInput(Order.number, ({ distance }: (typeof distances)[number]) => distance)
  return Arr.sort(distances, byDistance).find(({ distance }) => distance <= maxDistance)?.candidate
}

const unknown = (what: string, word: string, meant: string | undefined, help: string) =>
  new UsageError({
    message: `Unknown ${what} "${word}". ${meant === undefined ? `See ${help}.` : `Did you mean "${meant}"?`}`
  })

const helpOf = (path: ReadonlyArray<string>) => ["gateway", ...path, "--help"].join(" ")

/** Finds the command that the words name. Ignores further words if the command takes arguments. */
const find = (
  groups: ReadonlyArray<Group>,
  [name = "", second]: ReadonlyArray<string>
): Either.Either<CommandPage, UsageError> => {
  const commands = new Map(groups.flatMap(({ commands }) => commandsByName(commands)))
  const command = commands.get(name)
  if (command === undefined) {
    return Either.left(unknown("command", name, closest(name, [...commands.keys(), "help"]), helpOf([])))
  }
  const page = read(command, [name])
  if (second === undefined || page.children.length === 0 || (second === "help" && isGroup(page))) {
    return Either.right(page)
  }
  const children = new Map(page.children)
  const child = children.get(second)
  if (child !== undefined) return Either.right(read(child, [name, second]))
  const meant = closest(second, [...children.keys()])
  return Either.left(unknown("command", `${name} ${second}`, meant && `${name} ${meant}`, helpOf([name])))
}

const isOption = (arg: string) => /^-{1,2}[a-z]/i.test(arg)
const isWord = (arg: string) => !isOption(arg)

const nameOf = ([term]: Entry) => term.split(" ")[0] ?? ""

/** `--json` makes the error of an incomplete command JSON. */
const optionsOf = (page: CommandPage): ReadonlyArray<Entry> => (isGroup(page) ? [["--json", ""]] : page.options)

const everywhere = ["--help", "-h", "--version", "-v"]

/** Returns the names of the options. Fails for options that the command does not have, has twice or without a value, and for missing or extra arguments. */
const check = (page: CommandPage, args: ReadonlyArray<string>): Either.Either<ReadonlyArray<string>, UsageError> => {
  const { path, usage } = page
  const help = helpOf(path)
  const fail = (message: string) => Either.left(new UsageError({ message: `${message} See ${help}.` }))
  const entries = new Map(optionsOf(page).map((entry) => [nameOf(entry), entry]))
  const options: Array<string> = []
  const words: Array<string> = []
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ""
    if (arg === "--") {
      words.push(...args.slice(index + 1))
      break
    }
    if (!isOption(arg)) {
      words.push(arg)
      continue
    }
    const [name = "", ...values] = arg.split("=")
    const entry = entries.get(name)
    if (entry === undefined && !everywhere.includes(name)) {
      return Either.left(unknown("option", name, closest(name, [...entries.keys(), "--help", "--version"]), help))
    }
    if (entry !== undefined && options.includes(name)) return fail(`${name} is used more than once.`)
    options.push(name)
    const [, placeholder] = entry?.[0].split(" ") ?? []
    if (entry === undefined || placeholder === undefined || values.length > 0) continue
    const value = args[++index]
    if (value === undefined || entries.has(value) || everywhere.includes(value)) {
      if (value === "--help" || value === "-h") return Either.right([...options, value])
      return Either.left(new UsageError({ message: `${name} needs a value, ${placeholder}: ${entry[1]}.` }))
    }
  }
  if (isGroup(page) || options.some((option) => everywhere.includes(option))) return Either.right(options)
  const missingOption = page.options.find((entry) => !options.includes(nameOf(entry)) && usage.includes(entry[0]))
  const missing = page.arguments.filter(([term]) => usage.includes(term)).at(words.length) ?? missingOption
  if (missing !== undefined) {
    const [term, description] = missing
    return fail(`${term.replaceAll(/[<>]/g, "")} is required: ${description}.`)
  }
  const extra = words[page.arguments.length]
  return extra === undefined ? Either.right(options) : fail(`Unexpected argument "${extra}".`)
}

type Interpretation =
  | { readonly kind: "overview" }
  | { readonly kind: "version" }
  | { readonly kind: "help"; readonly page: CommandPage }
  | { readonly kind: "run"; readonly args: ReadonlyArray<string> }

const asksForHelp = (options: ReadonlyArray<string>) => options.includes("--help") || options.includes("-h")
const asksForVersion = (options: ReadonlyArray<string>) => options.includes("--version") || options.includes("-v")

const helpFor = (groups: ReadonlyArray<Group>, words: ReadonlyArray<string>) =>
  words.length === 0
    ? Either.right<Interpretation>({ kind: "overview" })
    : Either.map(find(groups, words), (page): Interpretation => ({ kind: "help", page }))

const interpretFlags = (flags: ReadonlyArray<string>): Either.Either<Interpretation, UsageError> => {
  const known = [...everywhere, "--json", "--completions"]
  const wrong = flags.find((flag) => !known.includes(flag))
  if (wrong !== undefined) return Either.left(unknown("option", wrong, closest(wrong, known), helpOf([])))
  if (asksForVersion(flags) && !asksForHelp(flags)) return Either.right({ kind: "version" })
  return flags.includes("--json") && !asksForHelp(flags)
    ? Either.left(new UsageError({ message: "gateway needs a command. See gateway --help." }))
    : Either.right({ kind: "overview" })
}

/** These options of @effect/cli run without a command. */
const builtIns = new Set(["--completions", "--log-level", "--wizard"])

const startWith = (index: number, args: ReadonlyArray<string>) => [...args.slice(index), ...args.slice(0, index)]

/** Moves options behind the words of a command, so `gateway --json keys list` and `gateway keys --json list` work too. */
const moveOptions = (groups: ReadonlyArray<Group>, args: ReadonlyArray<string>) => {
  const [name = "", ...others] = startWith(args.findIndex(isWord), args)
  const page = find(groups, [name])
  const second = others.findIndex(isWord)
  return second > 0 && Either.isRight(page) && isGroup(page.right)
    ? [name, ...startWith(second, others)]
    : [name, ...others]
}

const wordsOf = (args: ReadonlyArray<string>) => Arr.takeWhile(args, isWord)

/**
 * Decides what a command line asks for, and checks the names of its commands and options. The library then parses the
 * values. `args` is what follows the program's name.
 */
export const interpret = (
  groups: ReadonlyArray<Group>,
  args: ReadonlyArray<string>
): Either.Either<Interpretation, UsageError> => {
  const [name = "", ...values] = args
  if (builtIns.has(name.split("=")[0] ?? "") && (values.length > 0 || name.includes("="))) {
    return Either.right({ kind: "run", args })
  }
  if (!args.some(isWord)) return interpretFlags(args)
  const moved = moveOptions(groups, args)
  const words = wordsOf(moved)
  if (words[0] === "help") return helpFor(groups, words.slice(1))
  return Either.gen(function* () {
    const page = yield* find(groups, words)
    if (isGroup(page) && words[1] === "help") return yield* helpFor(groups, [...page.path, ...words.slice(2)])
    const options = yield* check(page, moved.slice(page.path.length))
    if (asksForHelp(options)) return { kind: "help", page } as const
    if (asksForVersion(options)) return { kind: "version" } as const
    if (!isGroup(page)) return { kind: "run", args: moved } as const
    if (!options.includes("--json")) return { kind: "help", page } as const
    return yield* Either.left(
      new UsageError({ message: `gateway ${page.path.join(" ")} needs a subcommand. See ${helpOf(page.path)}.` })
    )
  })
}

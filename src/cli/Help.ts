import { CliConfig, CommandDescriptor, HelpDoc, type Span, Usage } from "@effect/cli"
import { inOneLine } from "../ExitCode.ts"
import { padEnd, textWidth } from "./Table.ts"

type Descriptor = CommandDescriptor.Command<unknown>

interface Group {
  readonly title: string
  readonly commands: ReadonlyArray<{ readonly descriptor: Descriptor }>
}

type Entry = readonly [term: string, description: string]

// By hand: @effect/cli writes lines of 300 columns, and @effect/printer takes twice the time for every line more.
const lineWidth = 80

const toText = (doc: HelpDoc.HelpDoc) => inOneLine(HelpDoc.toAnsiText(doc))

const wrap = (text: string, indent: number): string => {
  const lines = [""]
  for (const word of text.split(" ")) {
    const line = lines.at(-1) ?? ""
    if (line !== "" && textWidth(line) + 1 + textWidth(word) > lineWidth - indent) lines.push(word)
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`
  }
  return lines.join(`\n${" ".repeat(indent)}`)
}

const section = (title: string, entries: ReadonlyArray<Entry>): string => {
  const width = Math.min(24, Math.max(...entries.map(([term]) => textWidth(term))))
  const lines = entries.map(([term, description]) => {
    const start = textWidth(term) > width ? `  ${term}\n${" ".repeat(width + 4)}` : `  ${padEnd(term, width)}  `
    return start + wrap(description, width + 4)
  })
  return [title, ...lines].join("\n")
}

interface Page {
  readonly description: string
  readonly sections: ReadonlyMap<string, ReadonlyArray<Entry>>
  /** Names of the subcommands, in order. */
  readonly names: ReadonlyArray<string>
}

const partsOf = (doc: HelpDoc.HelpDoc): ReadonlyArray<HelpDoc.HelpDoc> =>
  HelpDoc.isSequence(doc) ? [...partsOf(doc.left), ...partsOf(doc.right)] : [doc]

/** The library puts the type before our description, and whether the option may be left out after it. */
const entryOf = ([term, about]: readonly [Span.Span, HelpDoc.HelpDoc]): Entry => {
  const [, description = HelpDoc.empty] = partsOf(about)
  return [toText(HelpDoc.p(term)), toText(description)]
}

const read = (command: Descriptor): Page => {
  let title = ""
  let description = ""
  const names: Array<string> = []
  const sections = new Map<string, ReadonlyArray<Entry>>()
  for (const part of partsOf(CommandDescriptor.getHelp(command, CliConfig.make({ showBuiltIns: false })))) {
    if (part._tag === "Header") title = toText(part)
    if (part._tag === "Paragraph") description = toText(part)
    if (part._tag === "Enumeration") names.push(...part.elements.map((one) => toText(one).split(" ")[0] ?? ""))
    if (part._tag === "DescriptionList") {
      sections.set(title, [...(sections.get(title) ?? []), ...part.definitions.map(entryOf)])
    }
  }
  return { description, sections, names }
}

const usageOf = (command: Descriptor, path: ReadonlyArray<string>): string => {
  const usage = toText(HelpDoc.p(HelpDoc.getSpan(Usage.getHelp(CommandDescriptor.getUsage(command)))))
  return ["gateway", ...path, ...usage.split(" ").slice(1)].join(" ")
}

const commandsByName = (commands: Group["commands"]): ReadonlyArray<readonly [string, Descriptor]> =>
  commands.flatMap(({ descriptor }) =>
    Array.from(CommandDescriptor.getNames(descriptor), (name) => [name, descriptor] as const)
  )

const sectionOf = (title: string, commands: ReadonlyArray<readonly [string, Descriptor]>) =>
  section(
    title,
    commands.map(([name, command]) => [name, read(command).description])
  )

const overview = (description: string, groups: ReadonlyArray<Group>) =>
  [description, ...groups.map(({ commands, title }) => sectionOf(title, commandsByName(commands)))].join("\n")

/** In the order of the page. */
const childrenOf = (command: Descriptor, { names }: Page): ReadonlyArray<readonly [string, Descriptor]> => {
  const children = new Map(names.length === 0 ? [] : CommandDescriptor.getSubcommands(command))
  return names.flatMap((name) => {
    const child = children.get(name)
    return child === undefined ? [] : [[name, child] as const]
  })
}

/** The page of the command that the words name, and its subcommands; undefined if they name none. */
const find = (groups: ReadonlyArray<Group>, [name = "", second]: ReadonlyArray<string>) => {
  const command = new Map(groups.flatMap(({ commands }) => commandsByName(commands))).get(name)
  if (command === undefined) return undefined
  const page = read(command)
  const children = childrenOf(command, page)
  const child = new Map(children).get(second ?? "")
  if (child !== undefined && second !== undefined) {
    return { command: child, path: [name, second], page: read(child), children: [] }
  }
  return second !== undefined && children.length > 0 ? undefined : { command, path: [name], page, children }
}

/** Returns the placeholder and the description of the option; undefined if the command has no such option or it takes no value. */
export const valueOf = (
  groups: ReadonlyArray<Group>,
  words: ReadonlyArray<string>,
  option: string
): string | undefined => {
  const options = find(groups, words)?.page.sections.get("OPTIONS") ?? []
  const found = options.find(([term]) => term.startsWith(`${option} `))
  return found && `${found[0].slice(option.length + 1)}: ${found[1]}`
}

/** Undefined where the words name no command. */
export const render = (
  description: string,
  groups: ReadonlyArray<Group>,
  words: ReadonlyArray<string>
): string | undefined => {
  if (words.length === 0) return overview(description, groups)
  const found = find(groups, words)
  if (found === undefined) return undefined
  const { children, command, page, path } = found
  return [
    wrap(usageOf(command, path), 4),
    wrap(page.description, 0),
    ...Array.from(page.sections, ([title, entries]) => section(title, entries)),
    ...(children.length === 0 ? [] : [sectionOf("COMMANDS", children)])
  ].join("\n\n")
}

import { CliConfig, CommandDescriptor, HelpDoc, type Span, Usage } from "@effect/cli"
import { Array as Arr } from "effect"
import { inOneLine } from "../ExitCode.ts"
import { usageOf } from "./CommandExamples.ts"
import { padEnd, textWidth } from "./Output.ts"

type Descriptor = CommandDescriptor.Command<unknown>

export interface Group {
  readonly title: string
  readonly commands: ReadonlyArray<{ readonly descriptor: Descriptor }>
}

/** `term` is an argument such as `<ORG>`, or an option with its placeholder, such as `--limit N`. */
export type Entry = readonly [term: string, description: string]

export interface CommandPage {
  /** The words of the command, such as `keys` and `create`. */
  readonly path: ReadonlyArray<string>
  /** The parts of the usage line, such as `gateway`, `<ORG>` and `[--json]`. */
  readonly usage: ReadonlyArray<string>
  readonly description: string
  readonly arguments: ReadonlyArray<Entry>
  readonly options: ReadonlyArray<Entry>
  readonly children: ReadonlyArray<readonly [name: string, command: Descriptor]>
}

const toText = (doc: HelpDoc.HelpDoc) => inOneLine(HelpDoc.toAnsiText(doc))

const partsOf = (doc: HelpDoc.HelpDoc): ReadonlyArray<HelpDoc.HelpDoc> =>
  HelpDoc.isSequence(doc) ? [...partsOf(doc.left), ...partsOf(doc.right)] : [doc]

/** Keeps only our description. The library puts the type before it, and whether the option is optional after it. */
const entryOf = ([term, about]: readonly [Span.Span, HelpDoc.HelpDoc]): Entry => {
  const [, description = HelpDoc.empty] = partsOf(about)
  return [toText(HelpDoc.p(term)), toText(description)]
}

/** A part of a usage line: `<ORG>`, `--org ORG`, or either in brackets if it is optional. */
const usagePart = /\[[^\]]*\]|<[^>]*>|--\S+ \S+|\S+/g

/** Returns the parts of the usage line, the arguments first. */
const usageLineOf = (command: Descriptor, path: ReadonlyArray<string>): ReadonlyArray<string> => {
  const usage = toText(HelpDoc.p(HelpDoc.getSpan(Usage.getHelp(CommandDescriptor.getUsage(command)))))
  const [, ...parts] = usage.match(usagePart) ?? []
  const [options, args] = Arr.partition(parts, (part) => part.includes("<"))
  const [optional, required] = Arr.partition(options, (part) => !part.startsWith("["))
  return ["gateway", ...path, ...args, ...required, ...optional]
}

export const read = (command: Descriptor, path: ReadonlyArray<string>): CommandPage => {
  let title = ""
  let description = ""
  const childNames: Array<string> = []
  const sections = new Map<string, ReadonlyArray<Entry>>()
  for (const part of partsOf(CommandDescriptor.getHelp(command, CliConfig.make({ showBuiltIns: false })))) {
    if (part._tag === "Header") title = toText(part)
    if (part._tag === "Paragraph") description = toText(part)
    if (part._tag === "Enumeration")
      childNames.push(...part.elements.map((element) => toText(element).split(" ")[0] ?? ""))
    if (part._tag === "DescriptionList") {
      sections.set(title, [...(sections.get(title) ?? []), ...part.definitions.map(entryOf)])
    }
  }
  const children = new Map(childNames.length === 0 ? [] : CommandDescriptor.getSubcommands(command))
  return {
    path,
    usage: usageLineOf(command, path),
    description,
    arguments: sections.get("ARGUMENTS") ?? [],
    options: sections.get("OPTIONS") ?? [],
    children: childNames.flatMap((name) => {
      const child = children.get(name)
      return child === undefined ? [] : [[name, child] as const]
    })
  }
}

/** Whether the command only contains others, such as `keys`. */
export const isGroup = ({ children, options }: CommandPage): boolean => children.length > 0 && options.length === 0

export const commandsByName = (commands: Group["commands"]): ReadonlyArray<readonly [string, Descriptor]> =>
  commands.flatMap(({ descriptor }) =>
    Array.from(CommandDescriptor.getNames(descriptor), (name) => [name, descriptor] as const)
  )

// This file formats help itself, because @effect/cli writes lines of 300 columns, and the time of @effect/printer doubles
// with every line.
const lineWidth = 80

const wrap = (words: ReadonlyArray<string>, indent: number): string => {
  const lines = [""]
  for (const word of words) {
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
    return start + wrap(description.split(" "), width + 4)
  })
  return [title, ...lines].join("\n")
}

const sectionOf = (title: string, commands: ReadonlyArray<readonly [string, Descriptor]>) =>
  section(
    title,
    commands.map(([name, command]) => [name, read(command, [name]).description])
  )

const usageSections = (path: ReadonlyArray<string>): ReadonlyArray<string> => {
  const usage = usageOf(path)
  const lines = (title: string, texts: ReadonlyArray<string>) => [title, ...texts].join("\n  ")
  return usage === undefined ? [] : [lines("EXAMPLES", usage.examples), lines("DOCS", [usage.docs])]
}

/** Returns the help of `gateway` itself. */
export const overview = (description: string, groups: ReadonlyArray<Group>): string =>
  [
    description,
    ...groups.map(({ commands, title }) => sectionOf(title, commandsByName(commands))),
    ...usageSections([])
  ].join("\n")

/** Returns the help of a command. */
export const render = (page: CommandPage): string => {
  const sections = [
    { title: "ARGUMENTS", entries: page.arguments },
    { title: "OPTIONS", entries: page.options }
  ]
  return [
    wrap(isGroup(page) ? [...page.usage, "COMMAND"] : page.usage, 4),
    wrap(page.description.split(" "), 0),
    ...sections.flatMap(({ entries, title }) => (entries.length === 0 ? [] : [section(title, entries)])),
    ...(page.children.length === 0 ? [] : [sectionOf("COMMANDS", page.children)]),
    ...usageSections(page.path)
  ].join("\n\n")
}

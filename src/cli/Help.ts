import { usageOf } from "./CommandExamples.ts"
import {
  type CommandPage,
  commandsByName,
  type Descriptor,
  type Entry,
  type Group,
  isGroup,
  read
} from "./CommandPages.ts"
import { padEnd, textWidth } from "./Output.ts"

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

import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

export const root = path.resolve(import.meta.dirname, "../..")

export interface Page {
  /** From the root of the project. */
  readonly file: string
  readonly text: string
}

export const page = (file: string): Page => ({ file, text: readFileSync(path.join(root, file), "utf8") })

export const pages = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(path.join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => path.join("docs", file))
    .toSorted()
].map(page)

const fence = /^```(\w*)\n(.*?)^```$/gms

/** The fenced blocks of a language. */
export const fences = ({ text }: Page, language: string): ReadonlyArray<string> =>
  [...text.matchAll(fence)].flatMap(([, named, body = ""]) => (named === language ? [body] : []))

const prose = ({ text }: Page) => text.replace(fence, "")

const span = /(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)/gs

/** The inline code outside of fenced blocks. */
export const codeSpans = (of: Page): ReadonlyArray<string> =>
  [...prose(of).matchAll(span)].map(([, , code = ""]) => code.replaceAll(/\s+/g, " ").trim())

/** Targets of the links outside of code. */
export const links = (of: Page): ReadonlyArray<string> =>
  [
    ...prose(of)
      .replaceAll(span, "code")
      .matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)
  ].map(([, target = ""]) => target)

const headings = (of: Page) => [...prose(of).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading)

/** As hosts of Markdown derive it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .trim()
    .replaceAll(/\s/g, "-")

/** What a link may name of a page. */
export const anchors = (of: Page): ReadonlySet<string> => new Set(headings(of).map(anchorOf))

/** The text between a heading and the next one of any level. */
export const section = ({ file, text }: Page, heading: string): string => {
  const [, rest] = text.split(new RegExp(`^#+ ${heading}$`, "m"))
  if (rest === undefined) throw new Error(`${file} has no section ${heading}`)
  return rest.split(/^#+ /m)[0] ?? ""
}

/** The section that a text links to. */
export const linkedSection = (of: Page, text: string): string => {
  const [, anchor] = /\]\(#([\w-]+)\)/.exec(text) ?? []
  const heading = headings(of).find((one) => anchorOf(one) === anchor)
  if (heading === undefined) throw new Error(`${of.file} has no section for ${text}`)
  return section(of, heading)
}

/** A cell's text; a cell that is one code span is the code. */
export const plain = (cell: string): string => /^(`+) ?(.*?) ?\1$/.exec(cell)?.[2] ?? cell

/** The rows of the first table with this first heading, without the heading itself. */
export const table = (text: string, first: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = text.split("\n")
  const start = lines.findIndex((line) => line.startsWith(`| ${first} |`))
  if (start === -1) throw new Error(`there is no table whose first column is ${first}`)
  const after = lines.slice(start + 2)
  const end = after.findIndex((line) => !line.startsWith("|"))
  return after.slice(0, end === -1 ? after.length : end).map((line) =>
    line
      .replace(/^\|/, "")
      .replace(/\|\s*$/, "")
      .split("|")
      .map((cell) => plain(cell.trim()))
  )
}

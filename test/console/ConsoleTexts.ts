import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import * as ts from "typescript"
import { root } from "../docs/Markdown.ts"

const folder = "src/console"

/** Attributes and properties whose value is code. */
const codeNames = new Set(["aria-keyshortcuts", "class", "font", "href", "key", "path"])

/** Attributes and properties whose value is text even if it is one word. */
const labelNames = new Set([
  "action",
  "aria-label",
  "done",
  "empty",
  "hint",
  "label",
  "lead",
  "none",
  "placeholder",
  "remark",
  "text",
  "title"
])

/** Elements inside of a sentence. */
const inlineTags = new Set(["a", "b", "bdi", "code", "em", "q", "small", "span", "strong"])

/** Stands for a value in a text. */
const value = "x"

const normalize = (text: string): string => text.replaceAll(/\s+/g, " ").trim()

const isLiteral = (node: ts.Node): node is ts.StringLiteralLike | ts.TemplateExpression =>
  ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)

const textOfLiteral = (node: ts.StringLiteralLike | ts.TemplateExpression): string =>
  ts.isTemplateExpression(node)
    ? node.head.text + node.templateSpans.map(({ literal }) => value + literal.text).join("")
    : node.text

const tagOf = (node: ts.JsxElement): string => node.openingElement.tagName.getText()

/** The text of an element, in which values and components are `x`. */
const textOfElement = (node: ts.JsxElement | ts.JsxFragment): string =>
  node.children
    .map((child) => {
      // A line break between words is a space, one beside an element is none.
      if (ts.isJsxText(child)) return child.text.replaceAll(/^\s*\n\s*|\s*\n\s*$/g, "").replaceAll(/\s+/g, " ")
      if (ts.isJsxExpression(child)) {
        if (child.expression === undefined) return ""
        return isLiteral(child.expression) ? textOfLiteral(child.expression) : value
      }
      return ts.isJsxElement(child) && inlineTags.has(tagOf(child)) ? textOfElement(child) : value
    })
    .join("")

const hasText = ({ children }: ts.JsxElement | ts.JsxFragment): boolean =>
  children.some((child) => ts.isJsxText(child) && /\w/.test(child.text))

const nameOf = (node: ts.Node): string | undefined =>
  ts.isJsxAttribute(node) || ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)
    ? node.name.getText().replaceAll(/^["']|["']$/g, "")
    : undefined

/** Whether a literal is text for people: it has a label's name, or several words. */
const isText = (text: string, name = ""): boolean => {
  if (!/[A-Za-z]{2}/.test(text) || codeNames.has(name)) return false
  return labelNames.has(name) || /[A-Za-z]\s+\w/.test(text) || (name === "name" && /^[A-Z]/.test(text))
}

/** Names of attributes, properties and variables apply to the literals of their value, but not to elements in it. */
const nameBelow = (node: ts.Node, name: string | undefined): string | undefined =>
  nameOf(node) ?? (ts.isJsxElement(node) || ts.isFunctionLike(node) ? undefined : name)

/** The texts of a module of the console, in its order. */
export const textsIn = (file: string, source: string): ReadonlyArray<string> => {
  const texts: Array<string> = []
  const visit = (node: ts.Node, name: string | undefined): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return
    if ((ts.isJsxElement(node) || ts.isJsxFragment(node)) && hasText(node)) texts.push(normalize(textOfElement(node)))
    if (isLiteral(node) && isText(textOfLiteral(node), name)) texts.push(normalize(textOfLiteral(node)))
    ts.forEachChild(node, (child) => visit(child, nameBelow(node, name)))
  }
  const kind = file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, kind), undefined)
  return texts
}

interface Module {
  readonly file: string
  readonly texts: ReadonlyArray<string>
}

export const modules: ReadonlyArray<Module> = readdirSync(path.join(root, folder), {
  recursive: true,
  encoding: "utf8"
})
  // The texts of this file are programs, in languages of their own.
  .filter((file) => /\.tsx?$/.test(file) && file !== "format/Snippets.ts")
  .toSorted()
  .map((name) => {
    const file = path.join(folder, name)
    return { file, texts: textsIn(file, readFileSync(path.join(root, file), "utf8")) }
  })

// Writes the tables of docs/ that state facts of the code. With --check it only says which are not those of the code.
import { readFileSync, writeFileSync } from "node:fs"
import * as esbuild from "esbuild"

const load = async (contents) => {
  const { outputFiles } = await esbuild.build({
    stdin: { contents, resolveDir: "." },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node"
  })
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`)
}

const code = (text) => (text.includes("`") ? `\`\`${text}\`\`` : `\`${text}\``)
const line = (cells) => `| ${cells.join(" | ")} |`

/** Replaces the table that begins with these headings. */
const replaceTable = (text, headings, rows) => {
  const lines = text.split("\n")
  const start = lines.indexOf(line(headings))
  if (start === -1) throw new Error(`There is no table ${line(headings)}`)
  const end = lines.findIndex((one, index) => index > start && !one.startsWith("|"))
  return [...lines.slice(0, start + 2), ...rows.map(line), ...lines.slice(end)].join("\n")
}

const { answerHeaders, errorTable, toWire, variables, webhookEvents } = await load(`
  export { errorTable } from "./src/http/errors/ErrorTable.ts"
  export { toWire } from "./src/http/errors/ErrorMessages.ts"
  export { answerHeaders } from "./src/http/AnswerHeaders.ts"
  export { webhookEvents } from "./src/services/webhooks/WebhookEvents.ts"
  export { variables } from "./src/settings/Variables.ts"`)

const errors = Object.values(errorTable).flatMap(({ docs = [], example, status }) =>
  [docs].flat().map(({ action, failure = example, message }) => {
    const { error } = toWire(failure("chat")).body
    return [status, code(error.type), code(String(error.code)), message ?? code(error.message), action]
  })
)

const events = Object.entries(webhookEvents).map(([type, { data, sentWhen }]) => [code(type), sentWhen, data])

const headers = Object.entries(answerHeaders).map(([name, { description }]) => [code(name), description])

const settings = Object.values(variables).map(({ defaultText, description, variable }) => [
  code(variable),
  defaultText && code(defaultText),
  description
])

const tables = [
  { file: "docs/errors.md", headings: ["Status", "`type`", "`code`", "`message`", "Cause and action"], rows: errors },
  { file: "docs/webhooks.md", headings: ["`type`", "Sent when", "`data`"], rows: events },
  { file: "docs/api.md", headings: ["Header of an answer", "Value"], rows: headers },
  { file: "docs/operating/settings.md", headings: ["Variable", "Default", "Meaning"], rows: settings }
]

for (const { file, headings, rows } of tables) {
  const present = readFileSync(file, "utf8")
  const made = replaceTable(present, headings, rows)
  if (made === present) continue
  if (!process.argv.includes("--check")) writeFileSync(file, made)
  else {
    console.error(`${file} does not have the facts of the code: npm run docs`)
    process.exitCode = 1
  }
}

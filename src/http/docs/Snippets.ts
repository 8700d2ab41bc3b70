export const languages = ["curl", "Python", "JavaScript"] as const
export type Language = (typeof languages)[number]

export interface FormField {
  readonly name: string
  readonly text: string
  /** The text is the name of a file beside the program. */
  readonly isFile: boolean
}

export interface SampleRequest {
  readonly method: string
  readonly url: string
  readonly json: unknown
  readonly form: ReadonlyArray<FormField>
  readonly hasIdempotencyKey: boolean
  readonly answer: "json" | "stream" | "file"
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const indent = (text: string, by: string): string => text.replaceAll("\n", `\n${by}`)

const curl = ({ answer, form, hasIdempotencyKey, json, method, url }: SampleRequest): string => {
  const flags = { json: "", stream: " -N", file: " -L -o video.mp4" }[answer]
  const hasBody = json !== undefined || form.length > 0
  const verb = method === "GET" || (method === "POST" && hasBody) ? "" : ` -X ${method}`
  const content =
    json === undefined
      ? form.map(({ isFile, name, text }) => `-F ${quote(`${name}=${isFile ? "@" : ""}${text}`)}`)
      : ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(json, null, 2))}`]
  return [
    `curl${verb}${flags} ${url}`,
    '-H "Authorization: Bearer $GATEWAY_KEY"',
    ...(hasIdempotencyKey ? ['-H "Idempotency-Key: $(uuidgen)"'] : []),
    ...content
  ].join(" \\\n  ")
}

/** Only literals end a line of JSON without a quote or a bracket. */
const pythonValue = (value: unknown): string =>
  JSON.stringify(value, null, 4).replace(
    /\b(true|false|null)(?=,?$)/gm,
    (literal) => ({ true: "True", false: "False" })[literal] ?? "None"
  )

const python = ({ answer, form, hasIdempotencyKey, json, method, url }: SampleRequest): string => {
  const headers = [
    `"Authorization": f"Bearer {os.environ['GATEWAY_KEY']}"`,
    ...(hasIdempotencyKey ? ['"Idempotency-Key": str(uuid.uuid4())'] : [])
  ]
  const parts = form.map(({ isFile, name, text }) => {
    const value = JSON.stringify(text)
    return `        ${JSON.stringify(name)}: ${isFile ? `open(${value}, "rb")` : `(None, ${value})`},\n`
  })
  const content = [
    json === undefined ? "" : `    json=${indent(pythonValue(json), "    ")},\n`,
    form.length === 0 ? "" : `    files={\n${parts.join("")}    },\n`,
    answer === "stream" ? "    stream=True,\n" : ""
  ]
  const read = {
    json: "print(response.json())",
    stream: "for line in response.iter_lines(decode_unicode=True):\n    print(line)",
    file: 'with open("video.mp4", "wb") as file:\n    file.write(response.content)'
  }[answer]
  return `import os${hasIdempotencyKey ? "\nimport uuid" : ""}

import requests

response = requests.${method.toLowerCase()}(
    "${url}",
    headers={
        ${headers.join(",\n        ")},
    },
${content.join("")})
response.raise_for_status()
${read}`
}

const scriptValue = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^( *)"([A-Za-z_]\w*)":/gm, "$1$2:")

const javaScript = ({ answer, form, hasIdempotencyKey, json, method, url }: SampleRequest): string => {
  const headers = [
    "Authorization: `Bearer ${process.env.GATEWAY_KEY}`",
    ...(json === undefined ? [] : ['"Content-Type": "application/json"']),
    ...(hasIdempotencyKey ? ['"Idempotency-Key": crypto.randomUUID()'] : [])
  ]
  const parts = form.map(({ isFile, name, text }) => {
    const value = JSON.stringify(text)
    return `form.set(${JSON.stringify(name)}, ${isFile ? `await openAsBlob(${value}), ${value}` : value})\n`
  })
  const prelude = [
    form.some(({ isFile }) => isFile) ? 'import { openAsBlob } from "node:fs"\n\n' : "",
    answer === "file" ? 'import { writeFile } from "node:fs/promises"\n\n' : "",
    form.length === 0 ? "" : `const form = new FormData()\n${parts.join("")}`
  ]
  const options = [
    ...(method === "GET" ? [] : [`method: "${method}"`]),
    `headers: {\n    ${headers.join(",\n    ")}\n  }`,
    ...(json === undefined ? [] : [`body: JSON.stringify(${indent(scriptValue(json), "  ")})`]),
    ...(form.length === 0 ? [] : ["body: form"])
  ]
  const read = {
    json: "console.log(await response.json())",
    stream:
      "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {\n  process.stdout.write(text)\n}",
    file: 'await writeFile("video.mp4", Buffer.from(await response.arrayBuffer()))'
  }[answer]
  return `${prelude.join("")}const response = await fetch("${url}", {
  ${options.join(",\n  ")}
})
if (!response.ok) throw new Error(await response.text())
${read}`
}

export const snippet: Readonly<Record<Language, (request: SampleRequest) => string>> = {
  curl,
  Python: python,
  JavaScript: javaScript
}

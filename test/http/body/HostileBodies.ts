import { grown } from "../../harness/fixtures/TinyMedia.ts"

const mib = 1024 * 1024
const repeated = (unit: string, bytes: number): string => unit.repeat(Math.ceil(bytes / unit.length))
const listOf = (unit: string, bytes: number): string => repeated(`${unit},`, bytes).slice(0, -1)

export const model = "gpt-5.4"

const chat = (rest: string): string => `{"model":"${model}","max_tokens":5,${rest}}`
const saying = (content: string): string => chat(`"messages":[{"role":"user","content":${content}}]`)
const withField = (field: string): string => chat(`"messages":[{"role":"user","content":"hi"}],${field}`)
const withSchema = (schema: string): string =>
  withField(`"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]`)
const draw = (image: string): string => `{"model":"gpt-image-1.5","prompt":"a cat","image":${image}}`

const keys = (count: number, nameOf: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => `"${nameOf(at)}":0`).join(",")

const calls = (count: number, idOf: (at: number) => string, args: string): string => {
  const all = Array.from(
    { length: count },
    (_, at) => `{"id":"${idOf(at)}","type":"function","function":{"name":"f","arguments":${JSON.stringify(args)}}}`
  )
  return chat(`"messages":[{"role":"assistant","tool_calls":[${all.join(",")}]},{"role":"user","content":"hi"}]`)
}

const dataUrl = (bytes: number): string => `data:image/png;base64,${grown(bytes).toString("base64")}`
const inLines = (base64: string): string => base64.replaceAll(/.{76}/g, "$&\\n")
const boundary = "--------------------------------------------------"

const form = (name: string, content: string): Buffer =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`),
    Buffer.from(content),
    Buffer.from(`\r\n--${boundary}--\r\n`)
  ])

export interface HostileBody {
  readonly name: string
  readonly path: "/chat/completions" | "/images/generations" | "/images/edits" | "/videos"
  readonly type?: string
  readonly make: () => string | Buffer
  readonly status: number
}

const pictures = (url: string): string => {
  const part = `{"type":"image_url","image_url":{"url":"${url}"}}`
  return saying(`[${part},${part}]`)
}

const multipart = `multipart/form-data; boundary=${boundary}`

const over = (path: HostileBody["path"], type?: string) => (name: string, status: number, make: HostileBody["make"]) =>
  ({ name, path, status, make, ...(type === undefined ? {} : { type }) }) satisfies HostileBody

const [chats, drawings] = [over("/chat/completions"), over("/images/generations")]
const [edits, videos] = [over("/images/edits", multipart), over("/videos", multipart)]

/** Bodies whose cost is in what they hold. */
export const hostileBodies: ReadonlyArray<HostileBody> = [
  chats("a schema of 9 million {}", 400, () => withSchema(`{"enum":[${listOf("{}", 27 * mib)}]}`)),
  chats("30 MiB of [", 400, () => repeated("[", 30 * mib)),
  chats("2.2 million names", 400, () => withField(`"metadata":{${keys(2_200_000, (at) => `k${at}`)}}`)),
  chats("a million numbers as names", 400, () => withField(`"metadata":{${keys(1_000_000, (at) => `${at * 4001}`)}}`)),
  chats("99,000 names", 200, () =>
    withField(`"metadata":[${listOf(`{${keys(4_900, (at) => `key${at}`)}}`, 1_100_000)}]`)
  ),
  chats("names of 17,000 characters", 400, () =>
    withField(`"metadata":{${keys(1_800, (at) => "k".repeat(17_000) + at)}}`)
  ),
  chats("30 MiB of blanks", 400, () => repeated(" \n", 30 * mib)),
  chats("a number of 30 MiB", 400, () => withField(`"seed":${repeated("1", 30 * mib)}`)),
  chats("30 MiB that are no UTF-8", 400, () => Buffer.concat([Buffer.alloc(30 * mib, "é"), Buffer.from([0xff])])),
  chats("30,000 messages", 200, () => chat(`"messages":[${listOf('{"role":"user","content":"hi"}', 31 * 30_000)}]`)),
  chats("calls whose arguments hold millions of values", 400, () =>
    calls(300, String, `{"a":[${listOf("{}", 90_000)}]}`)
  ),
  chats("calls with ids of 17,000 characters", 400, () => calls(1_800, (at) => "k".repeat(17_000) + at, "{}")),
  chats("9,000 calls with one id", 200, () => calls(9_000, () => "same", "{}")),
  chats("a picture's URL of 30 MiB", 400, () =>
    saying(`[{"type":"image_url","image_url":{"url":"https://${repeated("a", 30 * mib)}"}}]`)
  ),
  drawings("base64 of 42 MiB in lines", 400, () => draw(`"${inLines(repeated("QUJD", 41 * mib))}"`)),
  drawings("a picture of 20 MiB in lines", 200, () => draw(`"${inLines(grown(20 * mib).toString("base64"))}"`)),
  drawings("a prompt of 40 MiB", 400, () => `{"model":"gpt-image-1.5","prompt":"${repeated("\\u00e9", 40 * mib)}"}`),
  edits("a form with a text of 40 MiB", 400, () => form("prompt", repeated("漢", 13 * mib))),
  videos("a form of 40 MiB with no end", 400, () =>
    form("prompt", repeated(`\r\n--${boundary.slice(1)}`, 40 * mib)).subarray(0, -10)
  )
]

/** Large bodies that are right. The texts are above any context length, which the provider says once it has counted them. */
export const largeBodies: ReadonlyArray<HostileBody> = [
  chats("text of 30 MiB", 400, () => saying(`"${repeated("All work and no play. ", 30 * mib)}"`)),
  chats("Chinese text of 15 MiB", 400, () => saying(`"${repeated("漢字", 5 * mib)}"`)),
  chats("escapes of 15 MiB", 400, () => saying(`"${repeated('\\"\\n', 15 * mib)}"`)),
  chats("switches that never close", 400, () => saying(`"${repeated("[sandbox ", 8 * mib)}"`)),
  chats("two pictures of 10 MiB", 200, () => pictures(dataUrl(10 * mib))),
  chats("two pictures of 10 MiB in lines", 200, () => pictures(inLines(dataUrl(10 * mib))))
]

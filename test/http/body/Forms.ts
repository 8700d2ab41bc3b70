import { Either } from "effect"
import { parseForm } from "../../../src/http/body/Multipart.ts"
import { runAtOnce } from "../../../src/services/runtime/EventLoop.ts"

export const readForm = (contentType: string, body: Buffer) => runAtOnce(parseForm(contentType, body))

/** One part of a form, its headers as given. */
export const rawPart = (headers: string, content: string | Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${headers}\r\n\r\n`), Buffer.from(content)])

export const textPart = (name: string, content: string): Buffer =>
  rawPart(`Content-Disposition: form-data; name="${name}"`, content)

export const filePart = (name: string, content: string | Uint8Array, file = "a.png"): Buffer =>
  rawPart(`Content-Disposition: form-data; name="${name}"; filename="${file}"\r\nContent-Type: image/png`, content)

export const boundary = "xYzZY"
export const formType = (of = boundary) => `multipart/form-data; boundary=${of}`

/** A whole form of parts, as bytes. */
export const formOf = (parts: ReadonlyArray<Uint8Array>, of = boundary): Buffer =>
  Buffer.concat([
    ...parts.flatMap((part) => [Buffer.from(`--${of}\r\n`), part, Buffer.from("\r\n")]),
    Buffer.from(`--${of}--\r\n`)
  ])

/** A form as clients in JavaScript send it. */
export const encoded = async (form: FormData): Promise<{ readonly type: string; readonly body: Buffer }> => {
  const request = new Request("http://localhost", { method: "POST", body: form })
  return {
    type: request.headers.get("content-type") ?? "",
    body: Buffer.from(await request.arrayBuffer())
  }
}

/** Names and contents of the parts, or the message of the refusal; the contents of files are marked. */
export const readParts = (body: string | Buffer, type = formType()) => {
  const parts = readForm(type, Buffer.from(body))
  if (Either.isLeft(parts)) return parts.left.message
  return parts.right.map(({ name, value }) => [
    name,
    typeof value === "string" ? value : `file:${Buffer.from(value).toString()}`
  ])
}

import { type Pieces, piecesOf } from "../../services/runtime/Pieces.ts"

export interface FilePart {
  readonly name: string
  readonly filename: string
  readonly type: string
  readonly bytes: Uint8Array
}

const quoted = (name: string): string =>
  `"${name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}"`

/** `multipart/form-data`. The boundary must not occur in what customers send: take one nobody can guess. */
export const multipart = (
  boundary: string,
  fields: Readonly<Record<string, string>>,
  files: ReadonlyArray<FilePart>
): { readonly contentType: string; readonly body: Pieces } => {
  const head = (name: string) => `--${boundary}\r\ncontent-disposition: form-data; name=${quoted(name)}`
  const parts: Array<Uint8Array> = Object.entries(fields).map(([name, value]) =>
    Buffer.from(`${head(name)}\r\n\r\n${value}\r\n`)
  )
  for (const { bytes, filename, name, type } of files) {
    const about = `${head(name)}; filename=${quoted(filename)}\r\ncontent-type: ${type}\r\n\r\n`
    parts.push(Buffer.from(about), bytes, Buffer.from("\r\n"))
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: piecesOf(parts) }
}

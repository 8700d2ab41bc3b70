import type { Steps } from "../../services/runtime/EventLoop.ts"

const pieceBytes = 64 * 1024

export function* decodeUtf8(bytes: Buffer): Steps<string> {
  const pieces: Array<string> = []
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + pieceBytes, bytes.length)
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end++
    pieces.push(bytes.toString("utf8", start, end))
    start = end
    if (start < bytes.length) yield
  }
  return pieces.join("")
}

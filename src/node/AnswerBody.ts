/** Returns the body of an answer to undici, or undefined if it has more than `maxBytes`. Both end the body. */
export const readAnswerBody = async (
  body: AsyncIterable<Uint8Array>,
  maxBytes: number
): Promise<Buffer | undefined> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

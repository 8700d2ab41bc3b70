import { brotliDecompressSync } from "node:zlib"

export const width = 640
export const height = 360

const frames = 40
const columns = width / 16
const rows = Math.ceil(height / 16)
/** Bytes per macroblock: 256 luma, 64 each of both chromas, a header of two. */
const stride = 386

/** A grey second of H.264, made by the encoder up to commit 405a78a: an I_PCM key frame to paint over, then P_Skip. */
const sample = [
  "WwRwBeCqwDYWjTmECO6Kmxhad+sa0cnDXxI8+dO9u98NqLGGm7JKICQ7vkEjJNsI4lFIgjE0QIEBUqMu3Sf5BLRha0AZv1a+VXoMeSwgHSkgccp9",
  "EUYYYYTtRBGe8A3IrP2/wv/9/z8V837WzZgWD0UsURyryyrUUyrYBmq9pxTxjgVYtpqOBVhQ7e7cWq2VWsEwSz4MAjVZdue1F4FCY7yCKanZJErn",
  "E8woSpIaWEW15pCW4EoBYpm0bf4QdE6B3sqcOGBZOr8RM1yepW9FB010QM9rbkhVw9GxsZ7Tu3wJf6y5z4n01QRHpLeo8r+tCGvlF5lYAqk6mjgs",
  "3Ra310s8F3KZ/Xh18ON6QO5FSX39XJQF79c8bcr40FKOmZ7mjIUE4uX+HamTmu0DvcMTqPIlU49/GIylvwsgyRKfx8y3WEpGLxdlWfjq9KhK2SIF",
  "k0apXWajxrCX1LewubnFdwryNE6bJf/lMGfyn4iTErmJuO7zF+knD/C7EyJ4oYIV7MKmI3C2ZypVg2AExclvXwBCMILi5FfPuIHWCA=="
].join("")

/** BT.601 in limited range from RGB: no sample is ever zero, which would need escapes. */
const paint = (frame: Buffer, pixels: Uint8Array): void => {
  for (let y = 0; y < rows * 16; y++) {
    for (let x = 0; x < width; x++) {
      const from = 3 * (Math.min(y, height - 1) * width + x)
      const [r = 0, g = 0, b = 0] = [pixels[from], pixels[from + 1], pixels[from + 2]]
      const block = stride * ((y >> 4) * columns + (x >> 4))
      frame[block + (y % 16) * 16 + (x % 16)] = 16.5 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
      if (x % 2 === 1 || y % 2 === 1) continue
      const difference = block + 256 + (y % 16) * 4 + (x % 16) / 2
      frame[difference] = 128.5 + (-37.797 * r - 74.203 * g + 112 * b) / 255
      frame[difference + 64] = 128.5 + (112 * r - 93.786 * g - 18.214 * b) / 255
    }
  }
}

export const encodeClip = (pixels: Uint8Array, seconds: number): Buffer => {
  const file = brotliDecompressSync(Buffer.from(sample, "base64"))
  const after = (box: string): number => file.indexOf(box, 0, "latin1") + 4
  file.writeUInt32BE(seconds, after("mvhd") + 16)
  file.writeUInt32BE(seconds, after("tkhd") + 20)
  file.writeUInt32BE(seconds * frames, after("mdhd") + 16)
  file.writeUInt32BE(seconds, after("stts") + 12)
  paint(file.subarray(after("mdat") + 9), pixels)
  return file
}

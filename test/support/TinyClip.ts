import { configuration, keyFrame, macroblockBytes, nextFrame } from "../../src/providers/sandbox/clip/Avc.ts"
import { head } from "../../src/providers/sandbox/clip/Mp4.ts"

const [width, height] = [32, 32]
const grid = { columns: 2, rows: 2, height }
const framesPerSecond = 24
const grey = new Uint8Array(macroblockBytes).fill(100)

/** A box that players pass over. */
const free = (text: string): Buffer => {
  const content = Buffer.from(text)
  const frame = Buffer.from("\0\0\0\0free", "latin1")
  frame.writeUInt32BE(frame.length + content.length)
  return Buffer.concat([frame, content])
}

/** A whole MP4 of a few kilobytes: a second of a grey square, and a note that makes it a file of its own. */
export const tinyClip = (note: string): Buffer => {
  const frames = Array.from({ length: framesPerSecond }, (_, index) =>
    index === 0 ? keyFrame(grid, 0, () => grey) : nextFrame(grid, index, [], () => grey)
  )
  const sizes = frames.map(({ length }) => length)
  const track = { width, height, framesPerSecond, configuration: configuration(grid), sizes, keyFrames: [0] }
  return Buffer.concat([head(track), ...frames, free(note)])
}

import { createFile, type Movie, MP4BoxBuffer, type Sample } from "mp4box"
import { assert } from "../../harness/It.ts"

export interface Parsed {
  readonly movie: Movie
  readonly samples: ReadonlyArray<Sample>
  /** The boxes of the file in order, with their start and end. */
  readonly boxes: ReadonlyArray<{ readonly type: string; readonly start: number; readonly end: number }>
}

/** Parses a file with one track. */
export const parse = (bytes: Uint8Array): Parsed => {
  const file = createFile()
  let movie: Movie | undefined
  file.onReady = (info) => {
    movie = info
  }
  file.onError = (_module, message) => assert.fail(message)
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(Uint8Array.from(bytes).buffer, 0), true)
  file.flush()
  assert.isDefined(movie, "no moov")
  assert.lengthOf(movie.tracks, 1)
  const samples = file.getTrackSamplesInfo(movie.tracks[0]?.id ?? 0)
  const boxes = file.boxes.map(({ size, start, type }) => ({ type, start: start ?? -1, end: (start ?? -1) + size }))
  return { movie, samples, boxes }
}

/** Returns the content of the first box with this type. */
export const contentOf = (bytes: Buffer, type: string): Buffer => {
  const at = bytes.indexOf(type, 0, "latin1")
  assert.isAbove(at, 3, `no box ${type}`)
  return bytes.subarray(at + 4, at - 4 + bytes.readUInt32BE(at - 4))
}

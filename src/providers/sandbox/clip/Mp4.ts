/** One track of H.264, in the order in which it is shown, every frame as long as the others. */
export interface Track {
  readonly width: number
  readonly height: number
  readonly framesPerSecond: number
  /** The decoder's configuration. */
  readonly configuration: Buffer
  /** Of every frame, in bytes. */
  readonly sizes: ReadonlyArray<number>
  /** The frames that need no other, by index. */
  readonly keyFrames: ReadonlyArray<number>
}

const movieTicks = 1_000
/** Of a frame, in the media's own time. */
const frameTicks = 512

const u16 = (...values: ReadonlyArray<number>): Buffer =>
  Buffer.concat(
    values.map((value) => {
      const bytes = Buffer.alloc(2)
      bytes.writeUInt16BE(value)
      return bytes
    })
  )

const words = (values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, index) => bytes.writeUInt32BE(value, 4 * index))
  return bytes
}
const u32 = (...values: ReadonlyArray<number>): Buffer => words(values)

const box = (type: string, ...content: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(content)
  return Buffer.concat([u32(8 + body.length), Buffer.from(type, "latin1"), body])
}

const zeros = (count: number): Buffer => Buffer.alloc(count)
const text = (value: string): Buffer => Buffer.from(value, "latin1")
const unity = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

const sampleEntry = ({ configuration, height, width }: Track): Buffer =>
  box(
    "avc1",
    u16(0, 0, 0, 1),
    zeros(16),
    u16(width, height),
    u32(0x480000, 0x480000, 0),
    u16(1),
    zeros(32),
    u16(24, 0xffff),
    box("avcC", configuration),
    // BT.601, of limited range.
    box("colr", text("nclx"), u16(6, 6, 6), zeros(1))
  )

const tables = (track: Track, mediaAt: number): Buffer => {
  const { keyFrames, sizes } = track
  return box(
    "stbl",
    box("stsd", u32(0, 1), sampleEntry(track)),
    box("stts", u32(0, 1, sizes.length, frameTicks)),
    box("stss", u32(0, keyFrames.length), words(keyFrames.map((index) => index + 1))),
    box("stsc", u32(0, 1, 1, sizes.length, 1)),
    box("stsz", u32(0, 0, sizes.length), words(sizes)),
    box("stco", u32(0, 1, mediaAt))
  )
}

const movie = (track: Track, mediaAt: number): Buffer => {
  const { framesPerSecond, height, sizes, width } = track
  const duration = Math.round((sizes.length * movieTicks) / framesPerSecond)
  return box(
    "moov",
    box("mvhd", u32(0, 0, 0, movieTicks, duration, 0x10000), u16(0x100, 0), u32(0, 0), unity, zeros(24), u32(2)),
    box(
      "trak",
      box("tkhd", u32(3, 0, 0, 1, 0, duration, 0, 0), u16(0, 0, 0, 0), unity, u32(width << 16, height << 16)),
      box(
        "mdia",
        box("mdhd", u32(0, 0, 0, framesPerSecond * frameTicks, sizes.length * frameTicks), u16(0x55c4, 0)),
        box("hdlr", u32(0, 0), text("vide"), zeros(12), text("VideoHandler\0")),
        box(
          "minf",
          box("vmhd", u32(1, 0, 0)),
          box("dinf", box("dref", u32(0, 1), box("url ", u32(1)))),
          tables(track, mediaAt)
        )
      )
    )
  )
}

/**
 * All of an MP4 file that comes before its frames, which then follow one after the other and end it. What a player
 * needs comes first, and no date is in it.
 */
export const head = (track: Track): Buffer => {
  const type = box("ftyp", text("isom"), u32(0x200), text("isomiso2avc1mp41"))
  const mediaAt = type.length + movie(track, 0).length + 8
  const media = Buffer.concat([u32(8 + track.sizes.reduce((sum, size) => sum + size, 0)), text("mdat")])
  return Buffer.concat([type, movie(track, mediaAt), media])
}

/** One track of H.264 in the order in which it is shown, every frame as long as the others. */
export interface Track {
  readonly width: number
  readonly height: number
  readonly framesPerSecond: number
  /** The decoder's configuration, as an `avcC` box has it. */
  readonly configuration: Buffer
  /** Of every frame, in bytes. */
  readonly sizes: ReadonlyArray<number>
  /** The frames that need no other, by index. */
  readonly keyFrames: ReadonlyArray<number>
}

const zeros = (count: number): ReadonlyArray<number> => Array.from({ length: count }, () => 0)

const movieTicks = 1_000
const frameTicks = 512

const u16 = (...values: ReadonlyArray<number>): Buffer => Buffer.from(Uint16Array.from(values).buffer).swap16()
const words = (values: ReadonlyArray<number>): Buffer => Buffer.from(Uint32Array.from(values).buffer).swap32()
export const u32 = (...values: ReadonlyArray<number>): Buffer => words(values)

const box = (type: string, ...content: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(content)
  return Buffer.concat([u32(8 + body.length), Buffer.from(type), body])
}

const unity = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

const movie = ({ configuration, framesPerSecond, height, keyFrames, sizes, width }: Track, mediaAt: number): Buffer => {
  const duration = Math.round((sizes.length * movieTicks) / framesPerSecond)
  const entry = box(
    "avc1",
    u16(0, 0, 0, 1, ...zeros(8), width, height, 72, 0, 72, 0, 0, 0, 1, ...zeros(16), 24, 0xffff),
    box("avcC", configuration),
    // BT.601, of limited range.
    box("colr", Buffer.from("nclx"), u16(6, 6, 6), Buffer.alloc(1))
  )
  const tables = [
    box("stsd", u32(0, 1), entry),
    box("stts", u32(0, 1, sizes.length, frameTicks)),
    box("stss", u32(0, keyFrames.length, ...keyFrames.map((index) => index + 1))),
    box("stsc", u32(0, 1, 1, sizes.length, 1)),
    box("stsz", u32(0, 0, sizes.length), words(sizes)),
    box("stco", u32(0, 1, mediaAt))
  ]
  const references = box("dinf", box("dref", u32(0, 1), box("url ", u32(1))))
  const media = [
    box("mdhd", u32(0, 0, 0, framesPerSecond * frameTicks, sizes.length * frameTicks), u16(0x55c4, 0)),
    box("hdlr", u32(0, 0), Buffer.from("vide"), Buffer.alloc(12), Buffer.from("VideoHandler\0")),
    box("minf", box("vmhd", u32(1, 0, 0)), references, box("stbl", ...tables))
  ]
  const track = [u32(3, 0, 0, 1, 0, duration, 0, 0, 0, 0), unity, u32(width << 16, height << 16)]
  const header = [
    u32(0, 0, 0, movieTicks, duration, 0x10000),
    u16(0x100, 0),
    u32(0, 0),
    unity,
    Buffer.alloc(24),
    u32(2)
  ]
  return box("moov", box("mvhd", ...header), box("trak", box("tkhd", ...track), box("mdia", ...media)))
}

/**
 * All of an MP4 file that comes before its frames, which then follow one after the other and end it. What a player
 * needs comes first, and no date is in it.
 */
export const head = (track: Track): Buffer => {
  const type = box("ftyp", Buffer.from("isom"), u32(0x200), Buffer.from("isomiso2avc1mp41"))
  const mediaAt = type.length + movie(track, 0).length + 8
  const mediaSize = 8 + track.sizes.reduce((sum, size) => sum + size, 0)
  return Buffer.concat([type, movie(track, mediaAt), u32(mediaSize), Buffer.from("mdat")])
}

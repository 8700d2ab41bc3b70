interface Point {
  readonly x: number
  readonly y: number
  /** Whether the curve goes through it. */
  readonly on: boolean
}
type Contour = ReadonlyArray<Point>

const between = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, on: true })

/** Quadratic curves; between two points off the curve lies one on it. */
const pathOf = (contour: Contour): string => {
  const [first, last] = [contour[0], contour.at(-1)]
  if (first === undefined || last === undefined) return ""
  const open = last.on ? last : between(last, first)
  const start = first.on ? first : open
  const points = first.on ? contour.slice(1) : contour
  const steps = points.map((point, index) => {
    if (point.on) return `L${point.x} ${point.y}`
    const next = points[index + 1] ?? start
    const end = next.on ? next : between(point, next)
    return `Q${point.x} ${point.y} ${end.x} ${end.y}`
  })
  return `M${start.x} ${start.y}${steps.join("")}Z`
}

const simple = (file: Buffer, start: number, contours: number): ReadonlyArray<Contour> => {
  const ends = Array.from({ length: contours }, (_, index) => file.readUInt16BE(start + 10 + 2 * index))
  const count = (ends.at(-1) ?? -1) + 1
  let at = start + 10 + 2 * contours
  at += 2 + file.readUInt16BE(at)
  const flags: Array<number> = []
  while (flags.length < count) {
    const flag = file.readUInt8(at++)
    const repeats = (flag & 8) === 0 ? 0 : file.readUInt8(at++)
    for (let times = 0; times <= repeats; times++) flags.push(flag)
  }
  const coordinates = (short: number, same: number): ReadonlyArray<number> => {
    let value = 0
    return flags.slice(0, count).map((flag) => {
      if ((flag & short) !== 0) value += (flag & same) === 0 ? -file.readUInt8(at++) : file.readUInt8(at++)
      else if ((flag & same) === 0) {
        value += file.readInt16BE(at)
        at += 2
      }
      return value
    })
  }
  const xs = coordinates(2, 16)
  const ys = coordinates(4, 32)
  const points = xs.map((x, index) => ({ x, y: ys[index] ?? 0, on: ((flags[index] ?? 0) & 1) === 1 }))
  return ends.map((end, index) => points.slice((ends[index - 1] ?? -1) + 1, end + 1))
}

const deepest = 4

/** The parts that a glyph is put together from; they are placed by an offset, and seldom scaled. */
const composite = (file: Buffer, start: number, find: Find, depth: number): ReadonlyArray<Contour> => {
  const found: Array<Contour> = []
  const fraction = (at: number): number => file.readInt16BE(at) / 16_384
  let at = start + 10
  for (let more = depth < deepest; more; ) {
    const flags = file.readUInt16BE(at)
    const part = find(file.readUInt16BE(at + 2))
    const [words, offsets] = [(flags & 1) !== 0, (flags & 2) !== 0]
    const dx = offsets ? (words ? file.readInt16BE(at + 4) : file.readInt8(at + 4)) : 0
    const dy = offsets ? (words ? file.readInt16BE(at + 6) : file.readInt8(at + 5)) : 0
    at += words ? 8 : 6
    let [xx, xy, yx, yy] = [1, 0, 0, 1]
    if ((flags & 8) !== 0) {
      xx = yy = fraction(at)
      at += 2
    } else if ((flags & 64) !== 0) {
      ;[xx, yy] = [fraction(at), fraction(at + 2)]
      at += 4
    } else if ((flags & 128) !== 0) {
      ;[xx, xy, yx, yy] = [fraction(at), fraction(at + 2), fraction(at + 4), fraction(at + 6)]
      at += 8
    }
    const contours = part === undefined ? [] : contoursOf(file, part, find, depth + 1)
    const placed = ({ on, x, y }: Point): Point => ({ x: x * xx + y * yx + dx, y: x * xy + y * yy + dy, on })
    found.push(...contours.map((contour) => contour.map(placed)))
    more = (flags & 32) !== 0
  }
  return found
}

const contoursOf = (file: Buffer, start: number, find: Find, depth: number): ReadonlyArray<Contour> => {
  const contours = file.readInt16BE(start)
  return contours >= 0 ? simple(file, start, contours) : composite(file, start, find, depth)
}

/** Where a glyph's shape begins in the file, undefined for a blank. */
export type Find = (glyph: number) => number | undefined

/** A glyph of a TrueType font as SVG path data, in font units, y upwards; empty for a blank. */
export const outline = (file: Buffer, glyph: number, find: Find): string => {
  const start = find(glyph)
  return start === undefined ? "" : contoursOf(file, start, find, 0).map(pathOf).join("")
}

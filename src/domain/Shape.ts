import type { Pixels } from "./Media.ts"
import type { ImageVariant, Shape } from "./Model.ts"

/** Hosts round pixels: 1344x768 is what some make of 16:9. */
const tolerance = 0.03

/** What a model makes whose shapes the catalog does not name. */
export const square: Shape = { aspectRatio: "1:1", size: undefined }

const common = ["1:1", "5:4", "4:3", "3:2", "16:9", "2:1", "21:9", "4:5", "3:4", "2:3", "9:16", "1:2", "9:21"]

/** Width by height, from `16:9` or `1344x768`. */
export const quotient = (text: string): number => {
  const [width = 1, height = 1] = text.split(/[:x]/).map(Number)
  return width / height
}

export const pixelsOf = (size: string): Pixels => {
  const [width = 0, height = 0] = size.split("x").map(Number)
  return { width, height }
}

export const sizeOf = ({ height, width }: Pixels): string => `${width}x${height}`

const distance = (one: string, other: string): number => Math.abs(Math.log(quotient(one) / quotient(other)))

/** -1 for portrait, 0 for square, 1 for landscape. */
const orientationOf = (text: string): number =>
  distance(text, square.aspectRatio) <= tolerance ? 0 : Math.sign(quotient(text) - 1)

const pixelDistance = (one: string, other: string): number => {
  const [a, b] = [pixelsOf(one), pixelsOf(other)]
  return Math.abs(Math.log((a.width * a.height) / (b.width * b.height)))
}

/** The nearest candidate with the orientation of `requested`; the first on a tie. */
export const nearestShape = <A>(
  candidates: ReadonlyArray<A>,
  shapeIn: (candidate: A) => Shape,
  requested: string
): A | undefined => {
  const isSize = requested.includes("x")
  const [nearest] = candidates
    .map((candidate) => ({ candidate, ...shapeIn(candidate) }))
    .filter(({ aspectRatio }) => orientationOf(aspectRatio) === orientationOf(requested))
    .map(({ aspectRatio, candidate, size }) => ({
      candidate,
      ratio: distance(size ?? aspectRatio, requested),
      pixels: isSize && size !== undefined ? pixelDistance(size, requested) : 0
    }))
    .toSorted((one, other) => one.ratio - other.ratio || one.pixels - other.pixels)
  return nearest?.candidate
}

/** The usual aspect ratio to which a size is rounded; undefined where none is near. */
const usualRatio = (size: string): string | undefined => {
  const [nearest] = common.toSorted((one, other) => distance(one, size) - distance(other, size))
  return nearest !== undefined && distance(nearest, size) <= tolerance ? nearest : undefined
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

export const shapeOf = (size: string): Shape => {
  const { height, width } = pixelsOf(size)
  const by = divisor(width, height)
  return { size, aspectRatio: usualRatio(size) ?? `${width / by}:${height / by}` }
}

/** Within a resolution. */
export const shapeKey = ({ aspectRatio, size }: Shape): string => size ?? aspectRatio

export const variantKey = ({ resolution, shape }: Pick<ImageVariant, "resolution" | "shape">): string =>
  shape === undefined ? resolution : `${resolution} ${shapeKey(shape)}`

import type { Pixels } from "./Media.ts"
import type { ImageVariant, Shape } from "./Model.ts"

/** Providers round sizes: some return 1344x768 for 16:9. */
const tolerance = 0.03

/** The assumed shape of variants without one. */
export const square: Shape = { aspectRatio: "1:1", size: undefined }

const commonRatios = ["1:1", "5:4", "4:3", "3:2", "16:9", "2:1", "21:9", "4:5", "3:4", "2:3", "9:16", "1:2", "9:21"]

/** Returns width divided by height, of `16:9` or `1344x768`. */
export const ratioOf = (text: string): number => {
  const [width = 1, height = 1] = text.split(/[:x]/).map(Number)
  return width / height
}

export const pixelsOf = (size: string): Pixels => {
  const [width = 0, height = 0] = size.split("x").map(Number)
  return { width, height }
}

export const sizeOf = ({ height, width }: Pixels): string => `${width}x${height}`

const distance = (one: string, other: string): number => Math.abs(Math.log(ratioOf(one) / ratioOf(other)))

/** Returns -1 for portrait, 0 for square, 1 for landscape. */
const orientationOf = (text: string): number =>
  distance(text, square.aspectRatio) <= tolerance ? 0 : Math.sign(ratioOf(text) - 1)

const pixelDistance = (one: string, other: string): number => {
  const [a, b] = [pixelsOf(one), pixelsOf(other)]
  return Math.abs(Math.log((a.width * a.height) / (b.width * b.height)))
}

/** Returns the nearest candidate with the same orientation as `requested`; the first one on a tie. */
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

/** Returns the common aspect ratio nearest to a size; undefined if none is within the tolerance. */
const commonRatioOf = (size: string): string | undefined => {
  const [nearest] = commonRatios.toSorted((one, other) => distance(one, size) - distance(other, size))
  return nearest !== undefined && distance(nearest, size) <= tolerance ? nearest : undefined
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

export const shapeOf = (size: string): Shape => {
  const { height, width } = pixelsOf(size)
  const commonDivisor = divisor(width, height)
  return { size, aspectRatio: commonRatioOf(size) ?? `${width / commonDivisor}:${height / commonDivisor}` }
}

/** Returns a key that is unique among a model's shapes of one resolution. */
export const shapeKey = ({ aspectRatio, size }: Shape): string => size ?? aspectRatio

export const variantKey = ({ resolution, shape }: Pick<ImageVariant, "resolution" | "shape">): string =>
  shape === undefined ? resolution : `${resolution} ${shapeKey(shape)}`

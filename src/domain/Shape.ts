import type { ImageVariant, Shape } from "./Model.ts"

/** Hosts round pixels: 1344x768 is what some make of 16:9. */
export const tolerance = 0.03

const common = ["1:1", "5:4", "4:3", "3:2", "16:9", "2:1", "21:9", "4:5", "3:4", "2:3", "9:16", "1:2", "9:21"]

/** Of `16:9` or `1344x768`. */
export const quotient = (text: string): number => {
  const [width = 1, height = 1] = text.split(/[:x]/).map(Number)
  return width / height
}

export const pixelsOf = (size: string): { readonly width: number; readonly height: number } => {
  const [width = 0, height = 0] = size.split("x").map(Number)
  return { width, height }
}

const distance = (one: string, other: string): number => Math.abs(Math.log(quotient(one) / quotient(other)))

/** The aspect ratio to which a size is rounded; undefined where none is near. */
export const nearestRatio = (
  ratios: ReadonlyArray<string>,
  size: string,
  within: number = tolerance
): string | undefined => {
  const [nearest] = ratios.toSorted((one, other) => distance(one, size) - distance(other, size))
  return nearest !== undefined && distance(nearest, size) <= within ? nearest : undefined
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

export const shapeOf = (size: string): Shape => {
  const { height, width } = pixelsOf(size)
  const by = divisor(width, height)
  return { size, aspectRatio: nearestRatio(common, size) ?? `${width / by}:${height / by}` }
}

/** Within a resolution. */
export const shapeKey = ({ aspectRatio, size }: Shape): string => size ?? aspectRatio

export const variantKey = ({ resolution, shape }: Pick<ImageVariant, "resolution" | "shape">): string =>
  shape === undefined ? resolution : `${resolution} ${shapeKey(shape)}`

import { MisspeltPath, UnknownEndpoint, UnknownMethod } from "../../domain/Failure.ts"
import { distanceWithin } from "../../domain/Nearest.ts"
import { apiPrefix } from "../schema/Endpoints.ts"
import { isBesideApi, type PublishedPath, publishedPaths } from "./PathTable.ts"
import { isMisspelt, pathOf } from "./RequestPath.ts"

/** Strangers may send any path: a longer one is compared with nothing. */
const longestPath = 200
const mostSegments = 10
const mostMistakes = 2

const prefix = apiPrefix.slice(1)

/** Below `/v1`, which all have. */
const published = publishedPaths.map((path) => ({ ...path, segments: path.shown.toLowerCase().split("/").slice(2) }))
type Published = (typeof published)[number]

const isParameter = (segment: string): boolean => segment.startsWith("{")

const hasParameter = ({ segments }: Published): boolean => segments.some(isParameter)

/** `images` may have one mistake, `completions` two. */
const segmentDistance = (given: string, meant: string): number => {
  if (isParameter(meant)) return 0
  const most = meant.length < 4 ? 0 : meant.length < 9 ? 1 : mostMistakes
  const distance = distanceWithin(most, given, meant)
  return distance > most ? mostMistakes + 1 : distance
}

const distance = (given: ReadonlyArray<string>, { segments }: Published): number =>
  given.length === segments.length
    ? given.reduce((sum, segment, index) => sum + segmentDistance(segment, segments[index] ?? ""), 0)
    : mostMistakes + 1

const findNear = (given: ReadonlyArray<string>): Published | undefined =>
  [0, 1, 2].flatMap((mistakes) => published.filter((path) => distance(given, path) === mistakes))[0]

const isPartOf = (given: string, { segments }: Published): boolean => {
  const path = segments.join("/")
  return path.startsWith(`${given}/`) || path.endsWith(`/${given}`)
}

/** Such as `/completions`, where no other path begins or ends like that. */
const findWhole = (given: ReadonlyArray<string>): Published | undefined => {
  const part = given.join("/")
  const [whole, ...others] = part === "" ? [] : published.filter((path) => !hasParameter(path) && isPartOf(part, path))
  return others.length === 0 ? whole : undefined
}

/** What is meant by a path without `/v1`, with something else before it, or with mistakes. */
const findMeant = (path: string): PublishedPath | undefined => {
  const segments = path.toLowerCase().split("/").slice(1)
  if (segments.length > mostSegments) return undefined
  const tails = segments.map((_, index) => segments.slice(index)).filter(([first]) => first !== prefix)
  const exact = tails.flatMap((tail) => published.filter((one) => distance(tail, one) === 0))
  const [given = []] = tails
  return exact[0] ?? findNear(given) ?? findWhole(given)
}

/** A failure that names the path that was probably meant, among those that everyone may know. */
export const unknownPath = (target: string): UnknownEndpoint | MisspeltPath | UnknownMethod => {
  const path = pathOf(target)
  if (path.length > longestPath || isMisspelt(target) || isBesideApi(path)) return new UnknownEndpoint()
  const same = publishedPaths.find(({ pattern }) => pattern.test(path))
  if (same !== undefined) return new UnknownMethod({ path: same.shown, methods: same.methods })
  const meant = findMeant(path)
  return meant === undefined ? new UnknownEndpoint() : new MisspeltPath({ meant: meant.shown })
}

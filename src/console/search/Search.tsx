import { useEffect, useId, useState } from "preact/hooks"
import { get, type QueryValues } from "../api/ApiClient.ts"
import { ApiError } from "../api/ApiError.ts"
import { asApiError, type PageAnswer } from "../api/useResource.ts"
import { formatCounted } from "../format/Amount.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { ErrorBox } from "../parts/Feedback.tsx"
import { link } from "../Route.ts"
import { useMembership } from "../SignedIn.ts"
import type { Key, Organization } from "../views/organizations/records.ts"
import { type RequestRecord, statusOf } from "../views/requests/RequestRows.ts"
import { statusOf as statusOfVideo, type VideoRecord } from "../views/videos/Videos.tsx"
import { useViews } from "../views.ts"

interface Match {
  readonly kind: "Pages" | "Organizations" | "Keys" | "Requests" | "Videos"
  readonly id: string
  readonly text: string
  /** Further texts, which distinguish results with the same `text`. */
  readonly details: ReadonlyArray<string>
  readonly href: string
}

interface SearchResult {
  readonly matches: ReadonlyArray<Match>
  readonly error: ApiError | undefined
}

interface Search {
  readonly search: string
  readonly isMember: boolean
  readonly signal: AbortSignal
}

type Finder = (search: Search) => Promise<ReadonlyArray<Match>>

const maxPerKind = 5

const list = async <Row,>(path: string, query: QueryValues, signal: AbortSignal): Promise<ReadonlyArray<Row>> =>
  (await get<PageAnswer<Row>>(path, { ...query, limit: maxPerKind }, signal)).data

const compact = (...details: ReadonlyArray<string | false | null>): ReadonlyArray<string> =>
  details.filter((detail) => typeof detail === "string")

const findOrganizations: Finder = async ({ isMember, search, signal }) =>
  isMember
    ? []
    : (await list<Organization>("/organizations", { search }, signal)).map(({ id, name, suspended }) => ({
        kind: "Organizations",
        id,
        text: name,
        details: compact(id, suspended && "suspended"),
        href: link(["organizations", id])
      }))

/** Links operators to the organization, whose page lists the key. */
const findKeys: Finder = async ({ isMember, search, signal }) =>
  (await list<Key>("/keys", { search }, signal)).map(({ id, name, org, org_name, revoked_at }) => ({
    kind: "Keys",
    id,
    text: name || id,
    details: compact(!isMember && org_name, name !== "" && id, revoked_at !== null && "revoked"),
    href: isMember ? link(["keys"]) : link(["organizations", org])
  }))

const findRequests: Finder = async ({ isMember, search, signal }) =>
  /\s/.test(search)
    ? []
    : (await list<RequestRecord>("/requests", { search }, signal)).map((row) => ({
        kind: "Requests",
        id: row.id,
        text: row.request_id,
        details: compact(!isMember && row.org_name, row.model, statusOf(row.status, row.code, row.video_status).text),
        href: link(["requests", row.id])
      }))

const findVideos: Finder = async ({ isMember, search: id, signal }) => {
  if (!/^vid_[0-9a-f]{32}$/.test(id)) return []
  try {
    const video = await get<VideoRecord>(`/videos/${id}`, {}, signal)
    const details = compact(!isMember && video.org_name, video.model, statusOfVideo(video).text)
    return [{ kind: "Videos", id, text: id, details, href: link(["videos", id]) }]
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return []
    throw error
  }
}

const finders = [findOrganizations, findKeys, findRequests, findVideos]

/** Cuts a pasted key to the part that identifies it: the secret must not leave the page. */
const withoutSecret = (text: string): string => text.replace(/^(ggw_.{8}).*/, "$1")

/** Searches every kind of record. If one search fails, returns its error and the results of the others. */
const searchAll = async (text: string, isMember: boolean, signal: AbortSignal): Promise<SearchResult> => {
  const search = withoutSecret(text)
  const answers = await Promise.allSettled(finders.map((find) => find({ search, isMember, signal })))
  const rejection = answers.find((answer) => answer.status === "rejected")
  return {
    matches: answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])),
    error: rejection && asApiError(rejection.reason)
  }
}

/** The delay between the last keystroke and the search. */
const typingMillis = 150
const minLength = 2

/** Returns matching views immediately, and records when the gateway has responded. */
const useSearch = (text: string): SearchResult & { readonly isPending: boolean } => {
  const [result, setResult] = useState<SearchResult & { readonly text: string }>({
    text: "",
    matches: [],
    error: undefined
  })
  const isMember = useMembership() !== undefined
  const commands = useViews().map(
    ({ key, path, title }): Match => ({
      kind: "Pages",
      id: title,
      text: title,
      details: [`g ${key}`],
      href: link([path])
    })
  )
  const isLongEnough = text.length >= minLength
  useEffect(() => {
    if (!isLongEnough) return
    const controller = new AbortController()
    const timer = setTimeout(async () => {
      const answer = await searchAll(text, isMember, controller.signal)
      if (!controller.signal.aborted) setResult({ text, ...answer })
    }, typingMillis)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, isLongEnough, isMember])
  const views = commands.filter((command) => command.text.toLowerCase().includes(text.toLowerCase()))
  return isLongEnough && result.text === text
    ? { matches: [...views, ...result.matches], error: result.error, isPending: false }
    : { matches: views, error: undefined, isPending: isLongEnough }
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

/** A combobox of all pages and records. Enter opens the active match, or during a search the first match when it arrives. */
export const SearchDialog = ({ close }: { readonly close: () => void }) => {
  const [text, setText] = useState("")
  const [active, setActive] = useState(0)
  const [isEntered, setEntered] = useState(false)
  const { error, isPending, matches } = useSearch(text.trim())
  const id = useId()
  const optionId = (index: number) => `${id}-${index}`
  const activeIndex = matches[active] === undefined ? 0 : active

  const open = (match: Match) => {
    close()
    location.hash = match.href
  }
  useEffect(() => {
    const [first] = matches
    if (isEntered && first !== undefined) open(first)
  })
  useEffect(() => document.getElementById(optionId(activeIndex))?.scrollIntoView({ block: "nearest" }), [activeIndex])

  const type = (next: string) => {
    setText(next)
    setActive(0)
    setEntered(false)
  }
  const handleKey = (event: KeyboardEvent) => {
    if (event.isComposing) return
    const step = steps[event.key]
    const match = matches[activeIndex]
    if (event.key === "Enter") {
      // Enter would also click the button that gets the focus.
      event.preventDefault()
      if (match !== undefined) open(match)
      else setEntered(isPending)
    }
    if (step === undefined) return
    event.preventDefault()
    setActive((activeIndex + step + matches.length) % Math.max(1, matches.length))
  }
  const emptyText = error === undefined ? "No results." : ""
  const status = isPending ? "Searching…" : matches.length === 0 ? emptyText : formatCounted(matches.length, "result")
  return (
    <Dialog title="Search" onClose={close}>
      <input
        role="combobox"
        aria-label="Search by page, ID or name"
        aria-expanded={matches.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={matches.length === 0 ? undefined : optionId(activeIndex)}
        placeholder="Search by page, ID or name"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={text}
        onInput={({ currentTarget }) => type(currentTarget.value)}
        onKeyDown={handleKey}
      />
      {error && <ErrorBox error={error} />}
      <div id={id} role="listbox" aria-label="Results">
        {[...new Set(matches.map(({ kind }) => kind))].map((kind) => (
          <div key={kind} role="group" aria-label={kind}>
            <small aria-hidden="true">{kind}</small>
            {matches.map(
              (match, index) =>
                match.kind === kind && (
                  <div
                    key={match.id}
                    id={optionId(index)}
                    role="option"
                    aria-selected={index === activeIndex}
                    onPointerMove={() => setActive(index)}
                    onMouseDown={(event) => event.preventDefault()}
                    onClick={() => open(match)}
                  >
                    <bdi>{match.text}</bdi>
                    <span class="soft">
                      {match.details.map((detail, detailIndex) => (
                        <>
                          {detailIndex > 0 && ", "}
                          <bdi>{detail}</bdi>
                        </>
                      ))}
                    </span>
                  </div>
                )
            )}
          </div>
        ))}
      </div>
      <p class="soft" role="status">
        {status}
      </p>
    </Dialog>
  )
}

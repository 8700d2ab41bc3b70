import { useEffect, useId, useState } from "preact/hooks"
import { ApiError } from "../api/ApiError.ts"
import { get, type QueryValues } from "../api/Client.ts"
import { asApiError, type PageAnswer } from "../api/useResource.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { ErrorBox } from "../parts/Feedback.tsx"
import { link } from "../Route.ts"
import { useMembership } from "../Session.ts"
import type { Key, Organization } from "../views/organizations/records.ts"
import { type RequestRecord, statusOf } from "../views/requests/Outcome.ts"
import { statusOf as statusOfVideo, type VideoRecord } from "../views/videos/Videos.tsx"
import { useViews } from "../views.ts"

interface Match {
  readonly kind: "Views" | "Organizations" | "Keys" | "Requests" | "Videos"
  readonly id: string
  readonly text: string
  /** Tells it from others of the same text. */
  readonly details: ReadonlyArray<string>
  readonly href: string
}

interface Found {
  readonly matches: ReadonlyArray<Match>
  readonly error: ApiError | undefined
}

interface Search {
  readonly search: string
  readonly isMember: boolean
  readonly signal: AbortSignal
}

type LookUp = (search: Search) => Promise<ReadonlyArray<Match>>

const mostOfKind = 5

const list = async <Row,>(path: string, query: QueryValues, signal: AbortSignal): Promise<ReadonlyArray<Row>> =>
  (await get<PageAnswer<Row>>(path, { ...query, limit: mostOfKind }, signal)).data

const present = (...details: ReadonlyArray<string | false | null>): ReadonlyArray<string> =>
  details.filter((detail) => typeof detail === "string")

const organizations: LookUp = async ({ isMember, search, signal }) =>
  isMember
    ? []
    : (await list<Organization>("/organizations", { search }, signal)).map(({ id, name, suspended }) => ({
        kind: "Organizations",
        id,
        text: name,
        details: present(id, suspended && "suspended"),
        href: link(["organizations", id])
      }))

/** An operator finds a key at its organization. */
const keys: LookUp = async ({ isMember, search, signal }) =>
  (await list<Key>("/keys", { search }, signal)).map(({ id, name, org, org_name, revoked_at }) => ({
    kind: "Keys",
    id,
    text: name || id,
    details: present(!isMember && org_name, name !== "" && id, revoked_at !== null && "revoked"),
    href: isMember ? link(["keys"]) : link(["organizations", org])
  }))

const requests: LookUp = async ({ isMember, search, signal }) =>
  /\s/.test(search)
    ? []
    : (await list<RequestRecord>("/requests", { search }, signal)).map((row) => ({
        kind: "Requests",
        id: row.id,
        text: row.request_id,
        details: present(!isMember && row.org_name, row.model, statusOf(row.status, row.code).text),
        href: link(["requests", row.id])
      }))

const videos: LookUp = async ({ isMember, search: id, signal }) => {
  if (!/^vid_[0-9a-f]{32}$/.test(id)) return []
  try {
    const video = await get<VideoRecord>(`/videos/${id}`, {}, signal)
    const details = present(!isMember && video.org_name, video.model, statusOfVideo(video).text)
    return [{ kind: "Videos", id, text: id, details, href: link(["videos", id]) }]
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return []
    throw error
  }
}

const lookUps = [organizations, keys, requests, videos]

/** Only the part that finds a key leaves the page, never its secret. */
const withoutSecret = (text: string): string => text.replace(/^(ggw_.{8}).*/, "$1")

/** What an id or a part of a name may mean; one kind that fails keeps nothing of the others back. */
const lookUp = async (text: string, isMember: boolean, signal: AbortSignal): Promise<Found> => {
  const search = withoutSecret(text)
  const answers = await Promise.allSettled(lookUps.map((one) => one({ search, isMember, signal })))
  const refused = answers.find((answer) => answer.status === "rejected")
  return {
    matches: answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])),
    error: refused && asApiError(refused.reason)
  }
}

/** Typing waits this long for the next key. */
const typingMillis = 150
const minLength = 2

/** The views that the text names, at once, and what the gateway finds, when it has. */
const useSearch = (text: string): Found & { readonly isPending: boolean } => {
  const [found, setFound] = useState<Found & { readonly text: string }>({ text: "", matches: [], error: undefined })
  const isMember = useMembership() !== undefined
  const commands = useViews().map(
    ({ key, path, title }): Match => ({
      kind: "Views",
      id: title,
      text: title,
      details: [`g ${key}`],
      href: link([path])
    })
  )
  const isAsked = text.length >= minLength
  useEffect(() => {
    if (!isAsked) return
    const controller = new AbortController()
    const timer = setTimeout(async () => {
      const answer = await lookUp(text, isMember, controller.signal)
      if (!controller.signal.aborted) setFound({ text, ...answer })
    }, typingMillis)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, isAsked, isMember])
  const named = commands.filter((command) => command.text.toLowerCase().includes(text.toLowerCase()))
  return isAsked && found.text === text
    ? { matches: [...named, ...found.matches], error: found.error, isPending: false }
    : { matches: named, error: undefined, isPending: isAsked }
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

/** A combobox of everything that has a page; Enter opens, as soon as something matches. */
export const SearchDialog = ({ close }: { readonly close: () => void }) => {
  const [text, setText] = useState("")
  const [active, setActive] = useState(0)
  const [isEntered, setEntered] = useState(false)
  const { error, isPending, matches } = useSearch(text.trim())
  const id = useId()
  const optionId = (index: number) => `${id}-${index}`
  const shown = matches[active] === undefined ? 0 : active

  const open = (match: Match) => {
    close()
    location.hash = match.href
  }
  useEffect(() => {
    const [first] = matches
    if (isEntered && first !== undefined) open(first)
  })
  useEffect(() => document.getElementById(optionId(shown))?.scrollIntoView({ block: "nearest" }), [shown])

  const type = (next: string) => {
    setText(next)
    setActive(0)
    setEntered(false)
  }
  const press = (event: KeyboardEvent) => {
    if (event.isComposing) return
    const step = steps[event.key]
    const match = matches[shown]
    if (event.key === "Enter") {
      // It would press the button that has the focus again.
      event.preventDefault()
      if (match !== undefined) open(match)
      else setEntered(isPending)
    }
    if (step === undefined) return
    event.preventDefault()
    setActive((shown + step + matches.length) % Math.max(1, matches.length))
  }
  const none = error === undefined ? "Nothing matches." : ""
  const status = isPending ? "Searching…" : matches.length === 0 ? none : `${matches.length} found`
  return (
    <Dialog title="Search" onClose={close}>
      <input
        role="combobox"
        aria-label="A view, an id, or a part of a name"
        aria-expanded={matches.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={matches.length === 0 ? undefined : optionId(shown)}
        placeholder="A view, an id, or a part of a name"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={text}
        onInput={({ currentTarget }) => type(currentTarget.value)}
        onKeyDown={press}
      />
      {error && <ErrorBox error={error} />}
      <div id={id} role="listbox" aria-label="Matches">
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
                    aria-selected={index === shown}
                    onPointerMove={() => setActive(index)}
                    onMouseDown={(event) => event.preventDefault()}
                    onClick={() => open(match)}
                  >
                    <bdi>{match.text}</bdi>
                    <span class="soft">
                      {match.details.map((detail, place) => (
                        <>
                          {place > 0 && ", "}
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

import { countsByWhole } from "../../../services/requests/RequestCounts.ts"
import { formatCount } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { shorten } from "../../format/Short.ts"
import { Fact, Facts } from "../../parts/Facts.tsx"
import { Internal } from "../../parts/Internal.tsx"
import { Long } from "../../parts/Long.tsx"
import { link } from "../../Route.ts"
import { useMembership } from "../../Session.ts"
import type { RequestDetail } from "./RequestRecord.ts"

const notes: Readonly<Record<string, string>> = {
  usage_estimated: "usage estimated",
  hold_exceeded: "usage above the hold",
  usage_bounded: "impossible usage cut",
  hold_lost: "hold lost",
  replayed: "a kept result, repeated",
  cap_lowered: "output capped to the balance",
  charge_waived: "free: refused before any output",
  stop_reason_unknown: "ended for an unknown reason",
  usage_unexplained: "unexplained tokens in the usage",
  block_unknown: "a part of an unknown type",
  stated_cost_dropped: "impossible stated cost dropped"
}

const maxShown = 160

const filtered = (name: string, value: string | null) =>
  value && (
    <a href={link(["requests"], { [name]: value })}>
      <code>
        <bdi>{shorten(value, maxShown)}</bdi>
      </code>
    </a>
  )

/** Everything else that the log has of it. */
export const RequestFacts = ({ request }: { readonly request: RequestDetail }) => {
  const isMember = useMembership() !== undefined
  const { at, first_byte_ms, hold, org, org_name, usage, video } = request
  return (
    <div class="panel wide-facts">
      <Facts>
        <Fact name="At" at={at} />
        <Internal>
          {() => (
            <Fact name="Organization">
              <a href={link(["organizations", org])}>
                <bdi>{org_name ?? org}</bdi>
              </a>
            </Fact>
          )}
        </Internal>
        <Fact name="Key">
          <a href={isMember ? link(["keys"]) : link(["organizations", org])}>{request.key_name || request.key_id}</a>
        </Fact>
        <Fact name="Surface">{request.stream ? `${request.surface}, streamed` : request.surface}</Fact>
        <Fact name="Model">{filtered("model", request.model)}</Fact>
        <Internal>{() => <Fact name="Route">{filtered("route", request.route)}</Fact>}</Internal>
        <Fact name="Tag">{filtered("tag", request.tag)}</Fact>
        <Fact name="End user">{filtered("user", request.end_user)}</Fact>
        <Internal>
          {() => (
            <>
              <Fact name="Prompt cache">{request.preference}</Fact>
              <Fact name="Provider's request id" code={request.provider_request_id} />
              {request.stated_cost_usd !== null && <Fact name="Stated cost" usd={request.stated_cost_usd} />}
            </>
          )}
        </Internal>
        <Fact name="First byte">{first_byte_ms === null ? null : formatMillis(first_byte_ms)}</Fact>
        <Fact name="Took">{formatMillis(request.total_ms)}</Fact>
        {video && (
          <Fact name="Video">
            <a href={link(["videos", video.id])}>{video.status}</a>
          </Fact>
        )}
        {countsByWhole().flatMap(({ name, title }) =>
          usage?.[name] ? [<Fact key={name} name={title} children={formatCount(usage[name])} />] : []
        )}
        <Internal>
          {() => (
            <>
              {request.notes.length > 0 && (
                <Fact name="Notes">{request.notes.map((note) => notes[note] ?? note).join(", ")}</Fact>
              )}
              <Fact name="Address" code={request.address} />
              <Fact name="User agent">{request.user_agent && <Long text={request.user_agent} />}</Fact>
            </>
          )}
        </Internal>
        <Fact name="Request id">{filtered("search", request.request_id)}</Fact>
        <Fact name="Row" code={request.id} />
        {hold && (
          <Fact name="Hold">
            {hold.state} <code>{hold.id}</code>
          </Fact>
        )}
      </Facts>
    </div>
  )
}

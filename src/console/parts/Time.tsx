import { formatLocal, formatSpan, formatUtc } from "../format/Moment.ts"

/** Unix seconds in the reader's zone, or how long ago; in UTC where the pointer rests. */
export const Time = ({ ago = false, at }: { readonly at: number | null | undefined; readonly ago?: boolean }) => {
  if (at === null || at === undefined) return <span class="soft">–</span>
  const utc = formatUtc(at)
  const span = Date.now() / 1000 - at
  const [day, hour] = formatLocal(at).split(" ")
  return (
    <time dateTime={`${utc.replace(" ", "T")}Z`} title={`${ago ? `${formatLocal(at)}, ` : ""}${utc} UTC`}>
      {ago ? (
        <span>{span < 0 ? `in ${formatSpan(-span)}` : `${formatSpan(span)} ago`}</span>
      ) : (
        <>
          <span>{day}</span> <span>{hour}</span>
        </>
      )}
    </time>
  )
}

import { differenceOf } from "./differenceOf.ts"
import { Value } from "./Value.tsx"

/** What a change did to a record; of a new one, what it says. */
export const Difference = ({ after, before }: { readonly before: unknown; readonly after: unknown }) => {
  const changes = differenceOf(before, after)
  if (changes.length === 0) return <span class="soft">nothing else</span>
  return (
    <dl class="difference">
      {changes.map(({ is, name, was }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {before !== null && (
              <>
                <del>
                  <Value name={name} value={was} />
                </del>
                {" → "}
              </>
            )}
            <Value name={name} value={is} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

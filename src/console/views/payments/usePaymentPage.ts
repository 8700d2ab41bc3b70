import { useEffect, useState } from "preact/hooks"
import { useWrite } from "../../api/useWrite.ts"

/** Leads to the page of a payment, which the endpoint at `path` answers with. */
export const usePaymentPage = (path: string) => {
  const { error, isBusy, send } = useWrite<{ readonly url: string }>()
  const [isLeaving, setLeaving] = useState(false)
  useEffect(() => {
    // The browser's Back shows the page as it was left.
    const comeBack = ({ persisted }: PageTransitionEvent) => persisted && setLeaving(false)
    addEventListener("pageshow", comeBack)
    return () => removeEventListener("pageshow", comeBack)
  }, [])
  const leave = async (body?: unknown) => {
    const sent = await send("POST", path, body)
    if (sent === undefined) return
    setLeaving(true)
    location.assign(sent.answer.url)
  }
  return { error, isBusy: isBusy || isLeaving, leave }
}

import { useEffect, useRef } from "preact/hooks"

/** Calls while the page is visible, and at once when it comes back after a longer time. */
export const usePolling = (seconds: number | undefined, callback: () => void): void => {
  const latest = useRef(callback)
  latest.current = callback
  useEffect(() => {
    if (seconds === undefined) return
    let calledAt = performance.now()
    const beat = () => {
      if (document.hidden || performance.now() - calledAt < seconds * 1000) return
      calledAt = performance.now()
      latest.current()
    }
    const timer = setInterval(beat, 1000)
    document.addEventListener("visibilitychange", beat)
    return () => {
      clearInterval(timer)
      document.removeEventListener("visibilitychange", beat)
    }
  }, [seconds])
}

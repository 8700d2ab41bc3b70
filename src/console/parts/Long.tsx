const maxShown = 160

/** Text of any length and direction; one that is very long is folded. */
export const Long = ({ text }: { readonly text: string }) =>
  text.length <= maxShown ? (
    <bdi>{text}</bdi>
  ) : (
    <details class="long">
      <summary>
        <bdi>{text.slice(0, maxShown)}</bdi>…
      </summary>
      <bdi>{text}</bdi>
    </details>
  )

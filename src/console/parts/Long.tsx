const mostShown = 160

/** Text of any length and direction; one that is very long is folded. */
export const Long = ({ text }: { readonly text: string }) =>
  text.length <= mostShown ? (
    <bdi>{text}</bdi>
  ) : (
    <details class="long">
      <summary>
        <bdi>{text.slice(0, mostShown)}</bdi>…
      </summary>
      <bdi>{text}</bdi>
    </details>
  )

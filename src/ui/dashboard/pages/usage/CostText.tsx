/** The cost of models, and the share of calls without a known price. */
import type { Usage } from "../../api/Usage.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

export const CostText = ({ cost: { nanoUsd, unpricedCalls } }: Pick<Usage, "cost">) => {
  const t = useText(words)
  const { money } = useFormat()
  if (nanoUsd === null) return <>{t.unknown}</>
  return (
    <>
      {money(nanoUsd)}
      {unpricedCalls === 0 ? null : <span className={css["term"]}> {t.unpriced(unpricedCalls)}</span>}
    </>
  )
}

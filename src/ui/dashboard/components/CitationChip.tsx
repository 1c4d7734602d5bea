/** A citation's number and its passage. The code of its popover is loaded when it is pointed at or focused. */
import { lazy, Suspense, useState } from "react"
import { Button } from "react-aria-components"
import { texts, useText } from "../text/Language.tsx"
import css from "./CitationChip.module.css"
import type { Citation } from "./popovers/Citation.ts"

export type { Citation }

const popover = () => import("./popovers/CitationPopover.tsx")
const CitationPopover = lazy(() => popover().then((module) => ({ default: module.CitationPopover })))

/** Without a connection it is loaded again, and a failure told, with the press. */
const prepare = () => void popover().catch(() => {})

const words = texts(
  { citation: (index: number) => `Citation ${index}` },
  { citation: (index: number) => `Beleg ${index}` }
)

interface Props {
  readonly citation: Citation
  /** Link to the passage beside the reply. Without it the passage opens over the page. */
  readonly onShow?: ((index: number) => void) | undefined
}

export const CitationChip = ({ citation, onShow }: Props) => {
  const t = useText(words)
  const [isWanted, setWanted] = useState(false)
  const { index } = citation
  const label = t.citation(index)
  if (onShow !== undefined) {
    return (
      <Button className={css["chip"] ?? ""} aria-label={label} onPress={() => onShow(index)}>
        {index}
      </Button>
    )
  }
  const closed = (
    <Button
      className={css["chip"] ?? ""}
      aria-label={label}
      aria-haspopup="dialog"
      aria-expanded={false}
      onHoverStart={prepare}
      onFocus={prepare}
      onPress={() => setWanted(true)}
    >
      {index}
    </Button>
  )
  return isWanted ? (
    <Suspense fallback={closed}>
      <CitationPopover citation={citation} label={label} />
    </Suspense>
  ) : (
    closed
  )
}

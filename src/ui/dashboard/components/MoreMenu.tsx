/**
 * A menu for removing the page's item, separate from the frequent actions. Its code is loaded when it is pointed at or
 * focused.
 */
import { Ellipsis } from "lucide-react"
import { lazy, Suspense, useState } from "react"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Question } from "./Dialog.tsx"

const menu = () => import("./popovers/MoreItems.tsx")
const MoreItems = lazy(() => menu().then((module) => ({ default: module.MoreItems })))

/** Without a connection it is loaded again, and a failure told, with the press. */
const prepare = () => void menu().catch(() => {})

interface Props {
  /** Label of the action in the menu and title of the confirmation. */
  readonly title: string
  readonly question: string
  readonly onConfirm: () => Promise<unknown>
}

export const MoreMenu = ({ title, question, onConfirm }: Props) => {
  const t = useText(everywhere)
  const [asking, setAsking] = useState(false)
  const [isWanted, setWanted] = useState(false)
  const closed = (
    <Button
      kind="quiet"
      icon
      aria-label={t.more}
      aria-haspopup="menu"
      aria-expanded={false}
      onHoverStart={prepare}
      onFocus={prepare}
      onPress={() => setWanted(true)}
    >
      <Ellipsis aria-hidden size={18} />
    </Button>
  )
  return (
    <>
      {isWanted ? (
        <Suspense fallback={closed}>
          <MoreItems title={title} onAction={() => setAsking(true)} />
        </Suspense>
      ) : (
        closed
      )}
      <Question
        title={title}
        question={question}
        action={t.delete}
        onConfirm={onConfirm}
        isOpen={asking}
        onOpenChange={setAsking}
      />
    </>
  )
}

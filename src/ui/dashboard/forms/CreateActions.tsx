/** The buttons that end a form for something new. */
import { Button } from "../components/Button.tsx"
import { Actions, useHold } from "../components/Dialog.tsx"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { DraftState } from "./DraftNotes.tsx"
import type { Fields } from "./merge.ts"
import type { Draft } from "./useDraft.ts"

interface Props<A extends Fields> {
  readonly draft: Draft<A>
  readonly busy: boolean
  readonly onClose: () => void
  /** The name of what creates it, instead of "Create". */
  readonly action?: string
  /** The answer has something that is shown once: the window stays open until it is there. */
  readonly holds?: boolean
}

export const CreateActions = <A extends Fields>({
  action,
  draft,
  busy,
  holds = false,
  onClose
}: Props<A>) => {
  const t = useText(everywhere)
  const isHeld = holds && busy
  useHold(isHeld)
  return (
    <Actions>
      <DraftState draft={draft} />
      <Button busy={isHeld} onClick={onClose}>
        {t.cancel}
      </Button>
      <Button kind="primary" type="submit" busy={busy}>
        {action ?? t.create}
      </Button>
    </Actions>
  )
}

/** The buttons at the end of a form in a dialog. */
import { Button } from "../components/Button.tsx"
import { Actions, useBlockClose } from "../components/Dialog.tsx"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { DraftState } from "./DraftNotes.tsx"
import type { Fields } from "./merge.ts"
import type { Draft } from "./useDraft.ts"

interface Props<A extends Fields> {
  /** The state to show; none for a form without a draft. */
  readonly draft?: Draft<A>
  readonly busy: boolean
  readonly onClose: () => void
  /** The label of the submit button; "Save" by default. */
  readonly action?: string
  /** True if the response has a secret that is shown once. The dialog then cannot be closed before the response. */
  readonly showsSecret?: boolean
}

export const DialogActions = <A extends Fields>({
  action,
  draft,
  busy,
  showsSecret = false,
  onClose
}: Props<A>) => {
  const t = useText(commonTexts)
  const isCloseBlocked = showsSecret && busy
  useBlockClose(isCloseBlocked)
  return (
    <Actions>
      {draft === undefined ? null : <DraftState draft={draft} />}
      <Button busy={isCloseBlocked} onClick={onClose}>
        {t.cancel}
      </Button>
      <Button kind="primary" type="submit" busy={busy}>
        {action ?? t.save}
      </Button>
    </Actions>
  )
}

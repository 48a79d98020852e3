import { nextTick, reactive, ref } from 'vue'
import { ApiError } from '../../../src/client/api/api-error.js'

/** A form: its fields, what is wrong with each of them, and saving. The shared schemas say what is wrong. */
export const useForm = <Fields extends Record<string, unknown>>(initial: () => Fields) => {
  const fields = reactive({ ...initial() }) as Fields
  const faults = ref<Readonly<Record<string, string>>>({})
  const message = ref('')
  const isSaving = ref(false)

  const reset = (): void => {
    Object.assign(fields, initial())
    faults.value = {}
    message.value = ''
  }

  /** True when it was saved. Where it was not, the first field that is wrong has the focus. */
  const submit = async (save: () => Promise<unknown>): Promise<boolean> => {
    isSaving.value = true
    faults.value = {}
    message.value = ''
    try {
      await save()
      return true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      faults.value = faultsOf(error)
      message.value = error.message
      await nextTick()
      document.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
      return false
    } finally {
      isSaving.value = false
    }
  }

  return { fields, faults, message, isSaving, reset, submit }
}

const faultsOf = ({ details }: ApiError): Record<string, string> =>
  Object.fromEntries(details.map(({ path, message }) => [path.split('/')[1] ?? '', message]))

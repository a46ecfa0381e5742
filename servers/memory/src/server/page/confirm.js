// The dialog that asks before anything is changed.

import { byId, element, fill } from './dom.js';

/**
 * Says what will happen, and does it if the reader agrees. `run(values)` does it: while it runs the dialog stays, and if it
 * fails the dialog says why. `fields` are elements of the form, and `values` what was filled in, by name. Returns whether it
 * was done. Escape and Cancel do nothing.
 */
export function confirm({ title, text, action, danger = false, fields = [], run }) {
  const dialog = byId('confirm');
  const form = dialog.querySelector('form');
  const submit = byId('confirm-do');
  byId('confirm-title').textContent = title;
  fill(byId('confirm-text'), ...[text].flat().map((line) => element('p', {}, line)));
  fill(byId('confirm-fields'), ...fields);
  fill(byId('confirm-failure'));
  submit.textContent = action;
  submit.classList.toggle('danger', danger);
  submit.disabled = false;
  const invoker = document.activeElement;
  dialog.returnValue = '';
  dialog.showModal();
  // Whoever presses Enter at once does no harm.
  (fields.length > 0 ? form.querySelector('[name]') : byId('confirm-cancel')).focus();
  return new Promise((resolve) => {
    byId('confirm-cancel').onclick = () => dialog.close();
    form.onsubmit = async (event) => {
      event.preventDefault();
      if (submit.disabled) return;
      submit.disabled = true;
      fill(byId('confirm-failure'));
      try {
        await run(Object.fromEntries(new FormData(form)));
        dialog.close('done');
      } catch (failure) {
        fill(byId('confirm-failure'), ...[failure.message, ...(failure.details ?? [])].map((line) => element('p', {}, line)));
        submit.disabled = false;
        byId('confirm-cancel').focus();
      }
    };
    dialog.onclose = () => {
      // What opened it may have been drawn anew.
      if (!invoker?.isConnected || invoker === document.body) byId('detail').focus();
      resolve(dialog.returnValue === 'done');
    };
  });
}

! SPDX-License-Identifier: MIT
! stub_fortran.f90 - Fortran's loops of stub.c
subroutine bench_log_fortran(n) bind(C)
  use, intrinsic :: iso_c_binding, only: c_int64_t
  use pem_bench
  implicit none
  integer(c_int64_t), value :: n
  integer(c_int64_t) :: i

  do i = 0, n - 1
    call pem_notify_bench_log(i, not(i))
  end do
end subroutine

subroutine bench_off_fortran(n) bind(C)
  use, intrinsic :: iso_c_binding, only: c_int64_t
  use pem_bench
  implicit none
  integer(c_int64_t), value :: n
  integer(c_int64_t) :: i

  do i = 0, n - 1
    call pem_notify_bench_disabled(i, not(i))
  end do
end subroutine
